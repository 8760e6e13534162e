/** The explorer page: shows the part that the address names. */
import { listResources } from './catalog.ts';
import { isCounted, type Resource } from './resource.ts';
import { inSomeOrder } from './choose.ts';
import { leaveData, setUpData, showData } from './data.ts';
import { element, on, run, say, warn } from './dom.ts';
import { showHome, showList } from './home.ts';
import { showForget } from './key.ts';
import { setUpProof, showProof } from './proof.ts';
import { placeOf, readPlace, type Part } from './route.ts';
import { setUpTake, showTake } from './take.ts';
import { WHOLE, type View } from './view.ts';

const PARTS: readonly Part[] = ['home', 'data', 'proof'];

let resources: readonly Resource[] = [];
/** Whether the first screen has shown the list that the page began with. */
let isListed = false;

/** Shows what the address names. */
function show(): void {
  const place = readPlace(location.hash);
  const resource = resources.find(({ name }) => name === place.name);
  if (place.part === 'data' && !resource) {
    openPart('home', null);
    warn(`There is no resource ${place.name}.`);
    return;
  }
  openPart(place.part, resource ?? null);
  const view = resource ? inSomeOrder(resource, place.view) : place.view;
  if (place.part === 'home') home();
  if (place.part === 'proof') proof(view, resource);
  if (place.part !== 'data' || !resource) return;
  const go = (next: View) => goTo(placeOf('data', resource, next));
  showData(resource, view, { go });
  showTake(resource, view, placeOf('proof', resource, view));
  element('proof-link').setAttribute('href', placeOf('proof', resource, view));
}

/** Shows the resources as they were listed, and then as they are now. */
function home(): void {
  showHome(resources);
  if (!isListed) {
    isListed = true;
    return;
  }
  run(async () => {
    resources = await listResources();
    if (readPlace(location.hash).part === 'home') showHome(resources);
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

async function start(): Promise<void> {
  showForget();
  setUpData({
    go: (view) => {
      const { name } = readPlace(location.hash);
      const resource = resources.find((one) => one.name === name);
      if (resource) goTo(placeOf('data', resource, view));
    },
  });
  setUpTake();
  if (matchMedia('(max-width: 56rem)').matches) element('filter-box', HTMLDetailsElement).open = false;
  resources = await listResources();
  setUpProof();
  on(window, 'hashchange', show);
  on(element('skip'), 'click', (clicked) => {
    clicked.preventDefault();
    element('main').focus();
  });
  show();
  document.body.dataset.ready = 'true';
}

run(start);
