import { ask, counted, element, on, say, told } from './page.js';
import { fillTable } from './table.js';

const TABLE = {
  first: ['id', 'category', 'price'],
  none: 'No item matches this category and price range.',
};

/** The table of items with its three paging styles. Returns a function that gives the current filter and order. */
export function showItems() {
  const form = element('query');
  /** The starts of the previous pages, and the start of the next one. */
  let way = { before: [], here: null, next: null };

  const filter = () => {
    const query = new URLSearchParams();
    for (const name of ['category', 'sort', 'min_price', 'max_price']) {
      const { value } = form.elements[name];
      if (value !== '') query.set(name, value);
    }
    return query;
  };
  /** A price range requires an order by price, so the form shows the order that the request will have. */
  const orderRange = () => {
    const { sort, min_price: least, max_price: most } = form.elements;
    if (least.value !== '' || most.value !== '') sort.value = sort.value.replace('id_', 'price_');
  };
  const limit = () => Number(form.elements.limit.value);
  const style = () => form.elements.style.value;

  const urlOf = (place) => {
    const query = filter();
    query.set('limit', String(limit()));
    if (place !== null) query.set(style(), String(place));
    return `/items?${query}`;
  };

  const show = async ({ before, here }) => {
    const url = urlOf(here);
    const answer = await ask(url);
    say('items-request', told(url, answer));
    if (!answer.ok) return;
    const { data, page } = answer.body;
    fillTable('items-head', 'items-body', data, TABLE);
    way = { before, here, next: page.hasMore ? nextOf(page, here) : null };
    element('previous').disabled = before.length === 0;
    element('next').disabled = way.next === null;
  };

  const nextOf = ({ nextCursor }, here) => {
    if (style() === 'cursor') return nextCursor;
    return style() === 'offset' ? Number(here ?? 0) + limit() : Number(here ?? 1) + 1;
  };
  const begin = () => {
    orderRange();
    return show({ before: [], here: null });
  };

  on(form, 'submit', 'items-request', begin);
  on(form, 'change', 'items-request', begin);
  on(element('first'), 'click', 'items-request', begin);
  on(element('previous'), 'click', 'items-request', () =>
    show({ before: way.before.slice(0, -1), here: way.before.at(-1) ?? null }),
  );
  on(element('next'), 'click', 'items-request', () =>
    show({ before: [...way.before, way.here], here: way.next }),
  );
  on(element('depth'), 'submit', 'depth-result', () => compare(filter()));
  begin().catch((error) => say('items-request', `Failed: ${error.message}`));
  return filter;
}

/** Reads the same ten rows by offset and by cursor, to show the cost of depth. */
async function compare(filter) {
  const row = Math.max(1, Number(element('depth').elements.row.value));
  const urlWith = (changes) => `/items?${new URLSearchParams([...filter, ...Object.entries(changes)])}`;
  const before = await ask(urlWith({ offset: row - 1, limit: 1 }));
  if (!before.ok || before.body.page.nextCursor === null) {
    say(
      'depth-result',
      before.ok ? `There are fewer than ${counted(row)} rows.` : (before.body?.detail ?? ''),
    );
    return;
  }
  const byOffset = await ask(urlWith({ offset: row, limit: 10 }));
  const byCursor = await ask(urlWith({ cursor: before.body.page.nextCursor, limit: 10 }));
  const same = JSON.stringify(byOffset.body.data) === JSON.stringify(byCursor.body.data);
  say(
    'depth-result',
    `after row ${counted(row)}: offset ${byOffset.ms.toFixed(1)} ms, cursor ${byCursor.ms.toFixed(1)} ms, ` +
      (same ? 'the same rows' : 'different rows: items have changed in between'),
  );
}
