import type { Client } from '../access/admission.ts';
import { AppError } from '../base/errors.ts';
import { mayKnow } from '../http/permit.ts';
import type { Route } from '../http/route.ts';
import type { RoutesDocument } from '../openapi/document-routes.ts';
import { firstAbort } from '../store/turns/deadline.ts';
import { kindsOf } from './list.ts';
import { askableOfResource } from './query/not-indexed.ts';
import type { OpenResource } from './open.ts';
import { resourceFor } from './query/scope.ts';
import { indexesOf, type Resource } from './query/resource.ts';
import { describeRow } from './schema/describe-row.ts';
import { NOT_KNOWN, type KnownFields } from './resource-routes.ts';

/** How long a look waits for the store. Milliseconds. */
const LOOK_MS = 1_000;

/** Returns a function that describes routes by the indexes and kinds of now, as far as the store can be read. */
export function documentedRoutes(
  open: readonly OpenResource[],
  make: (one: OpenResource, known: KnownFields) => readonly Route[],
) {
  return async (client: Client, signal: AbortSignal): Promise<RoutesDocument> => {
    const own = open
      .filter(({ resource }) => mayKnow(client, resource.name))
      .map(({ resource }) => ({ resource: resourceFor(resource, client) }));
    const known = await Promise.all(own.map(({ resource }) => lookAt(resource, signal)));
    return {
      state: JSON.stringify(known.map(({ row, ...others }) => ({ ...others, row: row?.fingerprint }))),
      routes: () => own.flatMap((one, n) => make(one, known[n] ?? NOT_KNOWN)),
    };
  };
}

async function lookAt(resource: Resource, signal: AbortSignal): Promise<KnownFields> {
  let { indexes, kinds } = NOT_KNOWN;
  let row: KnownFields['row'];
  const limit = AbortSignal.timeout(LOOK_MS);
  const either = firstAbort([limit], signal);
  try {
    indexes = await indexesOf(resource, either);
    kinds = await kindsOf(resource, askableOfResource(resource, indexes), either);
    row = await describeRow(resource, either);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError) && !limit.aborted) throw error;
  }
  return { indexes, kinds, row };
}
