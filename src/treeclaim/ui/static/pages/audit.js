import { html } from "../components/html.js";
export const AuditPage = () => html`<h1>Audit</h1>`;
