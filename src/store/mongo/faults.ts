import { AppError, collectionReplaced, storeUnavailable, storeUnfit } from '../../errors.ts';
import { CODES, codeOf, isOtherCollection, snapshotFault } from './errors.ts';
import type { When } from './reply.ts';
import type { Setup } from './setup.ts';

/**
 * What the callers of a store are told of a read that failed. When it failed because the collection is not what its layout
 * says, the setup forgets that. `when` is what the plan says; without an `identity` the read was of whatever has the name.
 */
export function faultOf(error: unknown, setup: Setup, { at, identity }: When): unknown {
  const cause = error instanceof AppError ? error.cause : error;
  const code = codeOf(cause);
  if (code === CODES.otherIdentity) {
    setup.forget();
    return identity === undefined ? storeUnavailable(error) : collectionReplaced(error);
  }
  if (code === CODES.unauthorized) {
    setup.forget();
    return storeUnfit('The database does not let this server read what was asked for.', error);
  }
  const isOther = isOtherCollection(cause);
  const told = at === undefined ? error : snapshotFault(error);
  if (isOther || code === CODES.namespaceNotFound || told !== error) setup.forget();
  return isOther && told === error ? storeUnavailable(error) : told;
}
