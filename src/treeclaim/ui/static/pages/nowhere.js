// SPDX-License-Identifier: Apache-2.0
/** What is shown where an address leads nowhere. */

import { Heading } from "../components/heading.js";
import { html } from "../components/html.js";
import { Empty } from "../components/notices.js";
import { address } from "../routes.js";

export const NowherePage = () => html`<${Heading} title="No such place" />
  <${Empty} title="There is no page at this address">
    <p><code>${location.hash}</code> may have been cut when it was copied. <a href=${address("cloud")}>The cloud</a></p><//>`;
