/** The explorer page: shows the part that the address names. */
import { listResources } from './api.ts';
import { isCounted, type Resource } from './resource.ts';
import { inSomeOrder } from './choose.ts';
import { leaveData, readAgain, setUpData, showData } from './data.ts';
import { element, on, run, say, warn } from './dom.ts';
import { showHome, showList } from './home.ts';
import { showForget } from './key.ts';
import { setUpProof, showProof } from './proof.ts';
import { placeOf, readPlace, type Part } from './route.ts';
import { setUpTake, showTake } from './get-all.ts';
import { WHOLE, type View } from './view.ts';

const PARTS: readonly Part[] = ['home', 'data', 'proof'];
/** How often the page looks whether the server answers. Milliseconds. */
const LOOK_MS = 2500;

let resources: readonly Resource[] = [];
/** Whether they were listed once. */
let isListed = false;

/** Shows what the address names. */
function show(): void {
  const { part, name, resource, view: asked } = readPlace(location.hash, resources);
  if (part === 'data' && !resource) {
    openPart('home', null);
    home();
    warn(
      `There is no resource ${name} here. ${resources.length === 0 ? 'There is none at all.' : 'These exist:'}`,
    );
    return;
  }
  openPart(part, resource ?? null);
  const view = resource ? inSomeOrder(resource, asked) : asked;
  if (part === 'home') home();
  if (part === 'proof') proof(view, resource);
  if (part !== 'data' || !resource) return;
  const go = (next: View) => goTo(placeOf('data', resource, next));
  showData(resource, view, go, reload);
  showTake(resource, view, placeOf('proof', resource, view));
  element('proof-link').setAttribute('href', placeOf('proof', resource, view));
}

/** Shows the resources as they were listed, and then as they are now. */
function home(): void {
  showHome(resources);
  run(async () => {
    resources = await listResources();
    if (element('part-home').hidden === false) showHome(resources);
  });
}

/** Makes one part of the page visible. */
function openPart(part: Part, resource: Resource | null): void {
  warn('');
  if (part !== 'data') leaveData();
  for (const one of PARTS) {
    element(`part-${one}`).hidden = one !== part;
    const link = document.querySelector(`.top [data-part="${one}"]`);
    if (one === (part === 'data' ? 'home' : part)) link?.setAttribute('aria-current', 'page');
    else link?.removeAttribute('aria-current');
  }
  if (part !== 'data') element('filter-box').hidden = true;
  document.body.dataset.part = part;
  document.title = `${resource?.name ?? { home: 'Data', data: 'Data', proof: 'Proof' }[part]} \u00b7 sluice`;
  showList(resources, part === 'data' ? (resource?.name ?? '') : '');
}

/** The proof is of the resource in the address, else of the first that has streams. */
function proof(view: View, named: Resource | undefined): void {
  const resource = named ?? resources.find(isCounted);
  if (!resource || !isCounted(resource)) {
    say('proof-what', 'No resource has streams.');
    return;
  }
  showProof(resource, named ? view : WHOLE);
}

/** Shows another address, or the same one anew. */
function goTo(hash: string): void {
  if (location.hash === hash) show();
  else location.hash = hash;
}

function start(): void {
  showForget();
  setUpData();
  setUpTake();
  if (matchMedia('(max-width: 56rem)').matches) element('filter-box', HTMLDetailsElement).open = false;
  setUpProof();
  on(window, 'hashchange', () => isListed && show());
  on(element('skip'), 'click', (clicked) => {
    clicked.preventDefault();
    element('main').focus();
  });
  watchServer(() => {
    if (!readAgain()) reload();
  });
  reload();
}

/** Lists the resources, and shows what the address names. */
function reload(): void {
  run(list, (text) => warn(text, reload));
}

async function list(): Promise<void> {
  resources = await listResources();
  isListed = true;
  const [only, another] = resources.filter(isCounted);
  // Where there is nothing to choose, the start opens it. The address `#/` still lists it.
  if (only && !another && location.hash === '') location.replace(placeOf('data', only, WHOLE));
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
    const { status } = await fetch('/livez', { cache: 'no-store', signal: AbortSignal.timeout(2 * LOOK_MS) });
    return status < 500; // proxies answer 502 or 504 in its place
  } catch {
    return false; // whatever the reason, it did not answer
  }
}

start();
