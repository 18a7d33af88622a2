import { html } from "../components/html.js";
export const FitPage = () => html`<h1>Fit</h1>`;
