/** The style of the report. It has no reference to anything outside, and follows the reader's light or dark scheme. */
export const STYLE = `
:root { --ground: #fff; --raised: #f6f7f8; --text: #1b1f24; --quiet: #59626c; --line: #dfe3e7; --first: #0b57b8;
  --second: #a35200; --third: #0c6b3a; --fourth: #7a3ea8; --bad: #b3221b; --good: #0c6b3a; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --raised: #1d2226; --text: #e4e8eb; --quiet: #9ba6b0;
  --line: #333b43; --first: #82b4ff; --second: #e3aa55; --third: #63d294; --fourth: #cf9df2; --bad: #ff938a; --good: #63d294; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1rem; background: var(--ground); color: var(--text);
  font: 0.875rem/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.375rem; line-height: 1.3; } h2 { margin: 2rem 0 0.5rem; font-size: 1.0625rem; }
p, ul { margin: 0.375rem 0; } .quiet { color: var(--quiet); } code { font: 0.8125rem ui-monospace, Consolas, monospace; }
.verdict { margin: 1rem 0; padding: 0.625rem 0.875rem; border: 1px solid var(--line); border-left: 4px solid var(--good);
  background: var(--raised); } .verdict[data-is="1"] { border-left-color: var(--second); }
.verdict[data-is="2"] { border-left-color: var(--bad); } .verdict strong { font-size: 1rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 0.75rem; margin: 0; }
.figures dt { color: var(--quiet); } .figures dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(21rem, 100%), 1fr)); gap: 1.25rem; }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 600; } svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--quiet); font-size: 10.5px; } svg path { fill: none; stroke-width: 1.6; stroke-linejoin: round;
  stroke-linecap: round; } svg .dot { stroke-width: 4; } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .hint { fill: transparent; } svg .hint:hover { fill: var(--quiet); fill-opacity: 0.15; }
.legend { display: flex; flex-wrap: wrap; gap: 0 0.875rem; margin: 0 0 0.25rem; padding: 0; list-style: none; color: var(--quiet); }
.legend li::before { content: ""; display: inline-block; width: 0.75rem; height: 0.25rem; margin-right: 0.3rem;
  vertical-align: middle; background: currentColor; }
.first { stroke: var(--first); } .second { stroke: var(--second); } .third { stroke: var(--third); }
.fourth { stroke: var(--fourth); } .bad { stroke: var(--bad); } .quiet { stroke: var(--quiet); }
li.first::before { color: var(--first); } li.second::before { color: var(--second); } li.third::before { color: var(--third); }
li.fourth::before { color: var(--fourth); } li.bad::before { color: var(--bad); }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; } th, td { padding: 0.25rem 0.75rem 0.25rem 0;
  border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  overflow-wrap: normal; } thead th { color: var(--quiet); font-weight: 500; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } td.q { min-width: 12rem; }
td.worse, td.wrong { color: var(--bad); font-weight: 600; } td.better, td.proved { color: var(--good); font-weight: 600; }
`;
