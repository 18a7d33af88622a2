import { html } from "../components/html.js";
export const AskPage = () => html`<h1>Ask</h1>`;
