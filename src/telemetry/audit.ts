import type { Notes } from '../engine/edge.ts';
import { requestIdOf } from '../http/request-id.ts';
import type { Finished } from '../http/respond.ts';
import { endOf } from './end-reason.ts';
import type { RequestLogger } from './request-log.ts';

const LONGEST_PATH = 256;

/**
 * Logs who was refused, and who took a whole set: one line for each request that lacked a key or a right, and one for
 * each stream, file and ordered export. The lines name the client, never its key, and have no query.
 */
export function auditLog(log: Pick<RequestLogger, 'info'>): Finished {
  return (request, { status, bytes, cut }) => {
    const { notes, method, path } = request;
    const what = whatOf(notes, method, status);
    if (what === null) return;
    const { client, rights, exported, resource, refusal } = notes;
    const isWholeFile = exported !== null && status === 200;
    const rows = isWholeFile ? exported.rows : notes.rows;
    log.info(
      {
        audit: what,
        requestId: requestIdOf(request),
        client,
        ...(rights !== '' && { rights }),
        method,
        path: path.slice(0, LONGEST_PATH),
        resource: exported?.resource ?? resource,
        status,
        ...(what === 'refused' ? { code: refusal } : { rows, bytes, end: endOf(cut) }),
      },
      'audit',
    );
  };
}

/** `exported`: a set left the server. `ordered`: it will. null: neither, and nothing was refused. */
function whatOf({ refusal, route, cost }: Notes, method: string, status: number): string | null {
  if (refusal !== null) return 'refused';
  if (status === 202 && (route === '/exports' || cost === 'stream')) return 'ordered';
  const isSet = cost === 'stream' || cost === 'download';
  return method === 'GET' && isSet && (status === 200 || status === 206) ? 'exported' : null;
}
