/** The explorer page: shows the part that the address names. */
import { inSomeOrder } from './allowed-queries.ts';
import { listResources } from './api.ts';
import { leaveData, readAgain, setUpData, showData } from './data.ts';
import { element, on, run, say, warn } from './dom.ts';
import { setUpTake, showTake } from './get-all.ts';
import { showHome, showList } from './home.ts';
import { showForget } from './key.ts';
import { ProofPart } from './proof.ts';
import { isCounted, type Resource } from './resource.ts';
import { StreamsPart } from './streams.ts';
import { addressOf, readPlace, wholeOf, type Part, type View } from './view.ts';

const TITLES: Readonly<Record<Part, string>> = {
  home: 'Data',
  data: 'Data',
  proof: 'Proof',
  streams: 'Streams',
};
/** How often the page looks whether the server answers. Milliseconds. */
const LOOK_MS = 2500;

/** Null: they were not listed yet. */
let resources: readonly Resource[] | null = null;
/** The URL of the open streams. Undefined: the key may not see them. */
let streams: string | undefined;
const proofPart = new ProofPart();
const streamsPart = new StreamsPart();

function show(): void {
  if (!resources) return;
  const { part, name, view: asked } = readPlace(location.hash, resources);
  const view = asked && inSomeOrder(asked);
  if (part === 'data' && view) {
    openPart('data', view.resource.name);
    showData(view, (next) => goTo(addressOf('data', next)), reload);
    showTake(view);
    element('proof-link').hidden = view.resource.links.stream === undefined;
    element('proof-link').setAttribute('href', addressOf('proof', view));
  } else if (part === 'proof') {
    openPart('proof', '', view?.resource.name);
    proof(view);
  } else if (part === 'streams' && streams !== undefined) {
    openPart('streams');
    streamsPart.show(streams);
  } else {
    openPart('home');
    home();
    const others = resources.length === 0 ? 'There is none at all.' : 'These exist:';
    if (part === 'data') warn(`There is no resource ${name} here. ${others}`);
  }
}

/** Shows the resources as they were listed, and then as they are now. */
function home(): void {
  showHome(resources ?? []);
  run(async () => {
    resources = (await listResources()).resources;
    if (element('part-home').hidden === false) showHome(resources);
  });
}

/** Makes one part of the page visible. `name`: of the resource that it shows. */
function openPart(part: Part, name = '', title = name || TITLES[part]): void {
  warn('');
  if (part !== 'streams') streamsPart.leave();
  if (part !== 'data') {
    leaveData();
    element('filter-box').hidden = true;
  }
  for (const section of document.querySelectorAll<HTMLElement>('main > section'))
    section.hidden = section.id !== `part-${part}`;
  for (const link of document.querySelectorAll<HTMLElement>('.top [data-part]'))
    if (link.dataset.part === (part === 'data' ? 'home' : part)) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  document.body.dataset.part = part;
  document.title = `${title} \u00b7 sluice`;
  showList(resources ?? [], name);
}

/** Whether the key may read streams of a resource. */
function isStreamed({ links }: Resource): boolean {
  return links.stream !== undefined;
}

/** The proof is of the resource in the address, else of the first that has streams. */
function proof(view: View | null): void {
  const first = resources?.find(isStreamed);
  const shown = view ?? (first ? wholeOf(first) : null);
  if (shown && isStreamed(shown.resource)) proofPart.show(shown);
  else say('proof-what', 'No resource has streams.');
}

/** Shows another address, or the same one anew. */
function goTo(hash: string): void {
  if (location.hash === hash) show();
  else location.hash = hash;
}

/** Lists the resources, and shows what the address names. */
function reload(): void {
  run(list, (text) => warn(text, reload));
}

async function list(): Promise<void> {
  const listing = await listResources();
  resources = listing.resources;
  streams = listing.streams;
  element('proof-nav').hidden = !resources.some(isStreamed);
  element('streams-nav').hidden = streams === undefined;
  const [only, another] = resources.filter(isCounted);
  // Where there is nothing to choose, the start opens it. The address `#/` still lists it.
  if (only?.links.page !== undefined && !another && location.hash === '')
    location.replace(addressOf('data', wholeOf(only)));
  else show();
  document.body.dataset.ready = 'true';
}

/** Looks at the server every few seconds while the page is in sight. `isBack`: it answers again. */
function watchServer(isBack: () => void): void {
  const away = element('away');
  const look = async () => {
    const isGone = document.hidden ? !away.hidden : !(await isAnswering());
    if (!isGone && !away.hidden) isBack();
    away.hidden = !isGone;
    setTimeout(() => void look(), LOOK_MS);
  };
  void look();
}

async function isAnswering(): Promise<boolean> {
  try {
    const { status } = await fetch('livez', { cache: 'no-store', signal: AbortSignal.timeout(2 * LOOK_MS) });
    return status < 500; // proxies answer 502 or 504 in its place
  } catch {
    return false; // whatever the reason, it did not answer
  }
}

showForget();
setUpData();
setUpTake();
if (matchMedia('(max-width: 56rem)').matches) element('filter-box', HTMLDetailsElement).open = false;
on(window, 'hashchange', show);
on(element('skip'), 'click', (clicked) => {
  clicked.preventDefault();
  element('main').focus();
});
watchServer(() => {
  if (!readAgain()) reload();
});
reload();
