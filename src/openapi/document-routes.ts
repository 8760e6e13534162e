import type { Client } from '../access/admission.ts';
import { getOrMake } from '../base/get-or-make.ts';
import { isPublicName, mayUse } from '../http/permit.ts';
import { json } from '../http/reply.ts';
import { JSON_TYPE, jsonAnswer, notModified, type Route } from '../http/route.ts';
import { RecentMap } from '../base/recent-map.ts';
import { fingerprint } from '../rows/fingerprint.ts';
import { createDocument, type DocumentOptions } from './document.ts';

/** The routes of resources as a client has them, and a text that is another one when they are others. */
export interface RoutesDocument {
  readonly state: string;
  readonly routes: () => readonly Route[];
}

/** The most documents that are kept. */
const MOST_KEPT = 100;

/**
 * GET /openapi.json: the document of the routes that a client has, of those of the resources now (`ofResources`), and of this
 * one. Each key sees what it may use. A document is made once for the rights of a key, until the resources are others.
 */
export function getOpenApi(
  routesFor: (client: Client) => readonly Route[],
  ofResources: (client: Client, signal: AbortSignal) => Promise<RoutesDocument>,
  options: DocumentOptions,
): Route {
  const made = new RecentMap<{ readonly text: string; readonly etag: string }>(MOST_KEPT);
  const make = (own: RoutesDocument, client: Client, mount: string) => {
    const all = [...routesFor(client), ...own.routes(), route];
    const shown = all.filter((one) => !one.isFile && isShown(client, one));
    const text = JSON.stringify(createDocument(shown, options, mount));
    return { text, etag: `"${fingerprint(Buffer.from(text))}"` };
  };
  const route: Route = {
    method: 'GET',
    path: '/openapi.json',
    access: 'open',
    cost: 'page',
    id: 'getOpenApi',
    tag: 'Server',
    summary: 'Get the OpenAPI document',
    headers: ['If-None-Match'],
    produces: [JSON_TYPE],
    answers: {
      200: jsonAnswer('This OpenAPI 3.1 document', { type: 'object', description: 'an OpenAPI document' }, [
        'ETag',
        'Cache-Control',
      ]),
      304: notModified('this document'),
    },
    problems: ['invalid-header', 'precondition-failed'],
    handler: async ({ request, client }) => {
      const own = await ofResources(client, request.signal);
      const { mount } = request.notes;
      const kept = `${mount} ${client.key?.rights.hash ?? NO_KEY} ${own.state}`;
      const { text, etag } = getOrMake(made, kept, () => make(own, client, mount));
      return json(200, text, { etag, 'cache-control': 'no-cache' });
    },
  };
  return route;
}

/** What stands for no key among the hashes of rights. */
const NO_KEY = '-';

/** Where keys are required, one without a key sees no declared resource: their names and fields are for keys. */
function isShown(client: Client, route: Route): boolean {
  if (client.key !== null) return mayUse(client, route);
  return !client.hasKey || isPublicName(route);
}
