import { ask, counted, element, on, say, told } from './page.js';
import { fillTable } from './table.js';

/** Resources that have a section or an API of their own. */
const OTHERS = new Set(['/items', '/api/users']);

/** The resources that the operator declared: what can be asked of each, and its rows. Hidden where there are none. */
export async function showResources() {
  const { ok, body } = await ask('/resources');
  const resources = ok ? body.resources.filter(({ links }) => !OTHERS.has(links.page)) : [];
  if (resources.length === 0) return;
  const section = element('resources');
  section.append(element('resources-template').content.cloneNode(true));
  section.hidden = false;
  element('to-resources').hidden = false;
  const form = element('ask');
  const { resource: chosen, query, limit } = form.elements;
  chosen.append(...resources.map(({ name }, n) => new Option(name, n)));
  const resource = () => resources[chosen.value];

  const choose = () => {
    query.replaceChildren(...resource().queries.map((one, n) => new Option(textOf(one), n)));
    say('resource-note', noteOf(resource()));
    showInputs(resource().queries[query.value]);
  };
  const parameters = () => {
    const inputs = [...element('ask-values').querySelectorAll('input, select')];
    return new URLSearchParams(
      inputs.map(({ name, value }) => [name, value]).filter(([, value]) => value !== ''),
    );
  };
  let next = null;
  const show = async (cursor) => {
    const { links } = resource();
    const asked = parameters();
    const stream = `${links.stream}?${asked}`;
    asked.set('limit', limit.value);
    if (cursor) asked.set('cursor', cursor);
    const url = `${links.page}?${asked}`;
    const answer = await ask(url);
    say('resource-request', told(url, answer));
    say('resource-curl', `curl '${location.origin}${stream.replaceAll("'", '%27')}'`);
    element('resource-link').href = stream;
    const { data = [], page = {} } = answer.ok ? answer.body : {};
    fillTable('resource-head', 'resource-body', data, { first: ['id'], none: 'No row matches.' });
    next = page.nextCursor ?? null;
    element('resource-next').disabled = !page.hasMore;
  };

  on(chosen, 'change', 'resource-request', async () => choose());
  on(query, 'change', 'resource-request', async () => showInputs(resource().queries[query.value]));
  on(form, 'submit', 'resource-request', () => show(null));
  on(element('resource-next'), 'click', 'resource-request', () => show(next));
  choose();
}

/** A form of query, in words. */
function textOf({ filters, sort, index }) {
  const order = sort === null ? 'one row' : `ordered by ${sort}`;
  return `${[...filters, order].join(', ')} (${index})`;
}

/** The number of rows, and what the operator can do for more queries. */
function noteOf({ rows, unavailable, missing, refused }) {
  if (unavailable) return unavailable;
  return [
    `About ${counted(rows)} rows.`,
    ...missing.map(
      ({ index, line }) => `${index} orders no rows without the key. This line adds it: ${line}`,
    ),
    ...refused.map(({ index, reason }) => `${index} is not used: ${reason}.`),
  ].join(' ');
}

/** The inputs of a form of query: a value for each filter, and an order with its range. */
function showInputs(query) {
  const { filters = [], sort = null } = query ?? {};
  const inputs = filters.map((path) => labelled(`${path} is`, `${path}.eq`));
  if (sort !== null)
    inputs.push(
      labelled(`${sort} from`, `${sort}.gte`),
      labelled(`${sort} below`, `${sort}.lt`),
      labelled('Direction', 'sort', [
        ['ascending', `${sort}_asc`],
        ['descending', `${sort}_desc`],
      ]),
    );
  element('ask-values').replaceChildren(...inputs);
}

function labelled(text, name, options = null) {
  const label = document.createElement('label');
  const input = document.createElement(options ? 'select' : 'input');
  input.name = name;
  if (options) input.append(...options.map((option) => new Option(...option)));
  else input.autocomplete = 'off';
  label.append(`${text} `, input);
  return label;
}
