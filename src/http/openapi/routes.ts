import { json } from '../reply.ts';
import { JSON_TYPE, jsonAnswer, type Route } from '../route.ts';
import { fingerprint } from '../../rows/fingerprint.ts';
import { createDocument, type DocumentOptions } from './document.ts';

/** The document, made of these routes. */
interface Made {
  readonly of: readonly Route[];
  readonly text: string;
  readonly etag: string;
}

/**
 * GET /openapi.json: the document of these routes, of those that `following` resolves with at the moment, and of this
 * one. It is created on the first request, and again when `following` resolves with another array.
 */
export function getOpenApi(
  routes: readonly Route[],
  following: (signal: AbortSignal) => Promise<readonly Route[]>,
  options: DocumentOptions,
): Route {
  let made: Made | null = null;
  const make = (of: readonly Route[]): Made => {
    const text = JSON.stringify(createDocument([...routes, ...of, own], options));
    return { of, text, etag: `"${fingerprint(Buffer.from(text))}"` };
  };
  const own: Route = {
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
      304: {
        description: 'The client already has this document: its ETag is in If-None-Match',
        headers: ['ETag'],
      },
    },
    problems: ['invalid-header', 'precondition-failed'],
    handler: async ({ request }) => {
      const of = await following(request.signal);
      if (made?.of !== of) made = make(of);
      return json(200, made.text, { etag: made.etag, 'cache-control': 'no-cache' });
    },
  };
  return own;
}
