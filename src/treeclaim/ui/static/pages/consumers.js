import { html } from "../components/html.js";
export const ConsumersPage = () => html`<h1>Consumers</h1>`;
