// The theme of VitePress without its fonts: the reader's system has fonts.

import theme from "vitepress/theme-without-fonts";
// oxlint-disable-next-line no-unassigned-import -- a style sheet has no value
import "./style.css";

export default theme;
