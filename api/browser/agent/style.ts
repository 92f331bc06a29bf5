/**
 * The widget's style sheet. docs/widget.md lists the properties and parts that a page may style; the rest can't be reached from outside. The end of
 * the log reserves room for the button `latest`, so that nothing moves when it disappears.
 */
export const style = `
:host {
  all: initial;
  display: block;
  color-scheme: var(--svc-agent-color-scheme, light dark);
  --accent: var(--svc-agent-accent, light-dark(#4338ca, #a5b4fc));
  --on-accent: var(--svc-agent-on-accent, light-dark(#fff, #1e1b4b));
  --surface: var(--svc-agent-surface, light-dark(#fff, #16181d));
  --raised: var(--svc-agent-raised, light-dark(#f4f5f8, #22252c));
  --text: var(--svc-agent-text, light-dark(#1b1e25, #eceef2));
  --muted: var(--svc-agent-muted, light-dark(#565d6b, #a9b0bd));
  --line: var(--svc-agent-line, light-dark(#dfe2e8, #373c46));
  --danger: light-dark(#b3261e, #ffb4ab);
  --radius: var(--svc-agent-radius, 16px);
  --small-radius: calc(var(--radius) * .625);
  font: 400 1rem/1.5 var(--svc-agent-font, system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif);
  color: var(--text);
  text-align: start;
}
*, ::before, ::after { box-sizing: border-box; }
[hidden] { display: none !important; }
.unseen { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
h2, h3, h4, p, ol, ul, pre, blockquote { margin: 0; padding: 0; font: inherit; }
h3, h4, strong, .heading { font-weight: 650; }
ol, ul { list-style: none; }
p, h3, h4, li, .tool, .kind { unicode-bidi: plaintext; }
a { color: inherit; }
svg { forced-color-adjust: auto; inline-size: 1.25em; block-size: 1.25em; flex: none; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
button, textarea, input { font: inherit; color: inherit; margin: 0; }
button { display: inline-flex; align-items: center; justify-content: center; gap: .5em; min-block-size: 44px; min-inline-size: 44px; padding: .5em .75em; border: 1px solid transparent; border-radius: var(--small-radius); background: none; cursor: pointer; text-align: start; -webkit-tap-highlight-color: transparent; touch-action: manipulation; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

.launcher { position: fixed; inset-block-end: calc(var(--svc-agent-offset, 20px) + env(safe-area-inset-bottom)); inset-inline-end: var(--svc-agent-offset, 20px); z-index: var(--svc-agent-z-index, 2147483000); min-block-size: 52px; padding-inline: 1.1em 1.35em; border-radius: 26px; background: var(--accent); color: var(--on-accent); font-weight: 650; box-shadow: 0 6px 20px #0003, 0 2px 6px #0003; transition: transform .15s, box-shadow .15s; }
.launcher:hover { transform: translateY(-2px); box-shadow: 0 10px 28px #0004, 0 3px 8px #0003; }

.panel { display: flex; flex-direction: column; position: relative; overflow: hidden; margin: 0; padding: 0; max-inline-size: none; max-block-size: none; border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); color: var(--text); }
.panel:not([open]):not(.inline) { display: none; }
.inline { block-size: var(--svc-agent-inline-height, 34rem); max-block-size: 90vh; }
.floating { position: fixed; inset: auto; inset-block-end: calc(var(--svc-agent-offset, 20px) + env(safe-area-inset-bottom)); inset-inline-end: var(--svc-agent-offset, 20px); z-index: var(--svc-agent-z-index, 2147483000); inline-size: min(var(--svc-agent-width, 25.5rem), 100vw - 2 * var(--svc-agent-offset, 20px)); block-size: min(var(--svc-agent-height, 42rem), 100dvh - 2 * var(--svc-agent-offset, 20px)); box-shadow: 0 16px 48px #0003, 0 4px 12px #0002; animation: rise .2s ease-out; }
.floating::backdrop { background: none; }
@keyframes rise { from { opacity: 0; transform: translateY(12px); } }

.header { display: flex; align-items: center; gap: .5rem; min-block-size: 3.75rem; padding-block: .625rem; padding-inline: 1.125rem .5rem; border-block-end: 1px solid var(--line); }
.header h2 { flex: 1; min-inline-size: 0; font-weight: 650; font-size: 1.0625rem; line-height: 1.3; overflow-wrap: anywhere; hyphens: auto; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.header button { color: var(--muted); }
.middle { flex: 1; min-block-size: 0; display: flex; flex-direction: column; }
.log { position: relative; flex: 1; min-block-size: 0; overflow-y: auto; overscroll-behavior: contain; padding: 1.125rem; scrollbar-width: thin; scrollbar-color: var(--line) transparent; overflow-anchor: none; }
.log:focus-visible { outline-offset: -3px; }
.log:has(+ .latest[hidden]) { padding-block-end: calc(1.125rem + 44px); }
.latest { flex: none; padding: 0; border-radius: 0; border: 0; border-block-start: 1px solid var(--line); color: var(--muted); }
.latest:focus-visible { outline-offset: -3px; }

.welcome { display: grid; gap: .875rem; grid-template-columns: minmax(0, 1fr); overflow-wrap: anywhere; }
.chips { display: flex; flex-wrap: wrap; gap: .5rem; }
.chip { border: 1px solid var(--line); border-radius: 22px; padding: .5em 1em; font-size: .9375rem; line-height: 1.35; background: var(--surface); overflow-wrap: anywhere; }
button:not(.launcher, .send, .action):hover { background: var(--raised); }

.turn { margin-block-start: 1.25rem; display: grid; gap: .875rem; }
.question { justify-self: end; max-inline-size: 85%; padding: .625rem .875rem; border-radius: var(--radius); border-end-end-radius: 4px; background: var(--accent); color: var(--on-accent); overflow-wrap: anywhere; white-space: pre-wrap; }
.answer { min-inline-size: 0; display: grid; gap: .875rem; grid-template-columns: minmax(0, 1fr); }
.answer > :empty { display: none; }
.text { overflow-wrap: anywhere; }
.text > * + *, .text li > * + * { margin-block-start: .625em; }
.text ul, .text ol { padding-inline-start: 1.5em; }
.text ul { list-style: disc; }
.text ol { list-style: decimal; }
.text li + li { margin-block-start: .25em; }
.text a { color: var(--accent); text-underline-offset: .15em; }
.text code { font: .875em/1.5 ui-monospace, "SF Mono", "Liberation Mono", monospace; padding: .1em .3em; border-radius: 5px; background: var(--raised); }
.text pre { overflow-x: auto; padding: .75em; border-radius: var(--small-radius); background: var(--raised); }
.text pre code { padding: 0; background: none; }
.text blockquote { padding-inline-start: .875em; border-inline-start: 3px solid var(--line); color: var(--muted); }
.state { color: var(--muted); font-size: .9375rem; }
.state.failed { color: var(--danger); }
.state:is(.waiting, .queued, .reconnecting)::after { content: ""; display: inline-block; inline-size: .5em; block-size: .5em; margin-inline-start: .6em; border-radius: 50%; background: var(--accent); animation: pulse 1s ease-in-out infinite alternate; }
@keyframes pulse { to { opacity: .15; } }
.below, .offers { display: grid; gap: .875rem; grid-template-columns: minmax(0, 1fr); }
.tools { display: flex; gap: .25rem; margin-inline-start: -.625rem; margin-block: -.375rem; }
.tool { color: var(--muted); font-size: .875rem; padding-inline: .625rem; }
.small, .kind, .snippet, .disclosure { color: var(--muted); font-size: .8125rem; line-height: 1.45; }

.sources h3 { font-size: .8125rem; color: var(--muted); margin-block-end: .375rem; }
.sources ol { display: grid; gap: .5rem; }
.source > * { display: flex; gap: .625rem; min-block-size: 44px; padding: .625rem .75rem; border: 1px solid var(--line); border-radius: var(--small-radius); text-decoration: none; }
a:is(.action):hover, .source > a:hover { border-color: var(--accent); }
.number { flex: none; inline-size: 1.5rem; block-size: 1.5rem; border-radius: 50%; background: var(--raised); font-size: .75rem; line-height: 1.5rem; text-align: center; }
.source-text { flex: 1; min-inline-size: 0; display: grid; gap: .125rem; overflow-wrap: anywhere; }
.source-text > :first-child { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0 .75rem; }
.source-title { min-inline-size: 0; font-size: .9375rem; font-weight: 600; line-height: 1.35; }
.source-title svg { forced-color-adjust: auto; inline-size: .875em; block-size: .875em; margin-inline-start: .3em; color: var(--muted); }
.snippet { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
.kind { flex: none; font-size: .75rem; }
.actions { display: flex; flex-wrap: wrap; gap: .5rem; }
.action { display: inline-flex; align-items: center; gap: .5em; min-block-size: 44px; padding: .5em 1em; border: 1px solid transparent; border-radius: var(--small-radius); background: var(--accent); color: var(--on-accent); font-weight: 600; font-size: .9375rem; line-height: 1.35; text-decoration: none; overflow-wrap: anywhere; }
.action svg { forced-color-adjust: auto; inline-size: 1em; block-size: 1em; }

.lessons { display: grid; gap: .625rem; }
.lesson { display: grid; gap: .625rem; padding: .875rem 1rem; border: 1px solid var(--line); border-radius: var(--small-radius); font-size: .9375rem; overflow-wrap: anywhere; }
.lesson h3 { font-size: 1rem; line-height: 1.35; margin-block-start: -.5rem; }
h4 { font-size: .8125rem; color: var(--muted); }
.lesson ul { list-style: disc; padding-inline-start: 1.25em; }
.lesson ol { list-style: decimal; padding-inline-start: 1.25em; }
.try { padding: .625rem .75rem; border-radius: 8px; background: var(--raised); }

.lead { border: 1px solid var(--line); border-radius: var(--small-radius); border-inline-start: 4px solid var(--accent); overflow: hidden; background: var(--surface); font-size: .9375rem; }
.lead[data-accent="launch"] { border-inline-start: 6px double var(--accent); }
.lead[data-accent="support"] { border-inline-start-style: dotted; }
.lead[data-accent="proof"] { border-inline-start-width: 8px; }
.lead-toggle { inline-size: 100%; padding: .875rem 1rem; border-radius: 0; justify-content: space-between; }
.lead-toggle > span { min-inline-size: 0; display: grid; gap: .125rem; overflow-wrap: anywhere; }
.lead-toggle > span > span { color: var(--muted); font-size: .875rem; line-height: 1.4; }
.lead-toggle:focus-visible { outline-offset: -3px; }
.lead-toggle svg { color: var(--accent); transition: transform .15s; }
[aria-expanded="true"] > .open { transform: rotate(180deg); }
.lead-content, .lead-way { display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr); }
.lead-way { padding-block-start: .75rem; border-block-start: 1px solid var(--line); }
.lead-content { padding: .75rem 1rem 1rem; overflow-wrap: anywhere; }
.lead-content h3 { font-size: 1.125rem; line-height: 1.3; }
.lead-content h3 + p { margin-block-start: -.5rem; color: var(--muted); }
.lead-content h4 { margin-block: .25rem -.25rem; }
.path { padding: .75rem; border-radius: 8px; background: color-mix(in srgb, var(--accent) 9%, var(--surface)); }
.path strong { color: var(--accent); }
.momentum { counter-reset: step; display: grid; gap: .625rem; }
.momentum li { counter-increment: step; position: relative; padding-inline-start: 2.125rem; display: grid; }
.momentum li::before { content: counter(step); position: absolute; inset-inline-start: 0; inline-size: 1.5rem; block-size: 1.5rem; border-radius: 50%; background: var(--accent); color: var(--on-accent); font: 650 .75rem/1.5rem var(--svc-agent-font, system-ui, sans-serif); text-align: center; }
.momentum li:not(:last-child)::after { content: ""; position: absolute; inset-block: 1.75rem -.375rem; inset-inline-start: .6875rem; border-inline-start: 2px solid var(--line); }
.momentum span { color: var(--muted); font-size: .875rem; }
.fit { display: grid; gap: .25rem; }
.fit li { display: flex; gap: .5rem; }
.fit svg, .sent svg { color: var(--accent); margin-block-start: .125em; }
.lead-form { display: grid; gap: .5rem; }
iframe { display: block; inline-size: calc(100% + 8px); margin-inline: -4px; border: 0; background: var(--surface); color-scheme: auto; }
iframe.loading { opacity: 0; }
.problem, .over { color: var(--danger); font-size: .875rem; }
.problem:empty, .offline:empty, .counter:empty { display: none; }
.sent { display: flex; gap: .5rem; font-weight: 600; padding-block: .25rem; }
.code { display: grid; gap: .625rem; }
.code label { display: flex; gap: .75rem; align-items: center; }
.code input { inline-size: 8em; min-block-size: 44px; padding: .25em .75em; letter-spacing: .2em; border: 1px solid var(--muted); border-radius: 8px; background: var(--surface); }
.code .action { justify-self: start; background: var(--accent); color: var(--on-accent); }
.probe { background: var(--accent); color: var(--on-accent); border: 1px solid var(--line); outline: 1px solid var(--surface); text-decoration-color: var(--text); }

.offline { padding: .625rem 1.125rem; background: var(--raised); font-size: .875rem; }
.composer { display: flex; flex-wrap: wrap; align-items: flex-end; gap: .25rem; margin: .5rem .75rem 0; padding: .25rem; border: 1px solid var(--muted); border-radius: var(--radius); }
.composer:focus-within { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
textarea { flex: 1; min-inline-size: 0; min-block-size: 44px; max-block-size: 8.5em; field-sizing: content; resize: none; padding: .625rem .75rem; border: 0; background: none; line-height: 1.5; unicode-bidi: plaintext; overflow-wrap: anywhere; }
textarea:focus-visible { outline: none; }
::placeholder { color: var(--muted); opacity: 1; }
.send { padding: 0; border-radius: calc(var(--radius) - 4px); background: var(--accent); color: var(--on-accent); }
.send .stop { fill: currentColor; }
.counter { flex-basis: 100%; padding: 0 .75rem .25rem; font-size: .8125rem; color: var(--muted); }
.counter.over { color: var(--danger); }
.disclaimer { padding: .375rem 1.125rem .625rem; color: var(--muted); font-size: .75rem; line-height: 1.4; text-align: center; text-wrap: balance; }

@media (max-width: 30rem), (max-height: 30rem) {
  .floating { inset: var(--top, 0) 0 auto; inline-size: 100%; block-size: var(--height, 100dvh); border: 0; border-radius: 0; box-shadow: none; padding-block: env(safe-area-inset-top) env(safe-area-inset-bottom); }
  textarea, .code input { font-size: 1rem; }
}
@media (max-height: 22rem) {
  .disclaimer, .latest { display: none; }
  .header { min-block-size: 0; padding-block: 0; }
  .header h2 { -webkit-line-clamp: 1; }
  .log, .log:has(+ .latest[hidden]) { padding-block: .5rem; }
  .composer { margin-block: 1px; padding-block: 0; }
}
@media (prefers-reduced-motion: reduce) { *, ::before, ::after { animation: none !important; transition: none !important; } }
@media (forced-colors: active) {
  .question, .number, .path, .try, .offline, .momentum li::before { border: 1px solid CanvasText; }
  .send, .action, .launcher { border-color: ButtonText; }
  .composer:focus-within { outline: 2px solid Highlight; }
}
@media print { :host { display: none; } }
@supports not (color: light-dark(#000, #fff)) {
  :host { --accent: var(--svc-agent-accent, #4338ca); --on-accent: var(--svc-agent-on-accent, #fff); --surface: var(--svc-agent-surface, #fff); --raised: var(--svc-agent-raised, #f4f5f8); --text: var(--svc-agent-text, #1b1e25); --muted: var(--svc-agent-muted, #565d6b); --line: var(--svc-agent-line, #dfe2e8); --danger: #b3261e; }
}
`;
