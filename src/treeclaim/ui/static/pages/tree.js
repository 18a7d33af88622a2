import { html } from "../components/html.js";
export const TreePage = () => html`<h1>Tree</h1>`;
