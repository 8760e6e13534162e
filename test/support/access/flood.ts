import { connect, type Socket } from 'node:net';
import { request } from '../engine/raw.ts';

/** The outcome of one request: its status, with or without Retry-After, or a lost connection. */
export type Came = 'whole' | 'refused' | `status ${number}` | 'lost';

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Sends one request repeatedly at a given rate, whether answers come or not, as many clients would. It reuses
 * connections, and opens new ones when all are busy. It costs its process a tenth of what node:http takes.
 */
export class Flood {
  readonly came = new Map<Came, number>();
  readonly #port: number;
  readonly #bytes: string;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** The number of requests without an answer so far. */
  open = 0;

  constructor(url: URL, headers: readonly string[]) {
    this.#port = Number(url.port);
    this.#bytes = request(url.pathname + url.search, headers);
  }

  send(): void {
    this.open++;
    const connection = this.#idle.pop() ?? this.#connect();
    connection.send(this.#bytes);
  }

  close(): void {
    for (const { socket } of this.#all) socket.destroy();
  }

  #connect(): Connection {
    const connection = new Connection(connect(this.#port, '127.0.0.1'), {
      answered: (came) => {
        this.#count(came);
        this.#idle.push(connection);
      },
      closed: (wasBusy, wasUsed) => {
        this.#all.delete(connection);
        const at = this.#idle.indexOf(connection);
        if (at >= 0) this.#idle.splice(at, 1);
        if (!wasBusy) return;
        // A server may close an idle connection at the moment when it is used. The client then repeats the
        // request (RFC 9112, 9.3.1).
        if (wasUsed) this.#connect().send(this.#bytes);
        else this.#count('lost');
      },
    });
    this.#all.add(connection);
    return connection;
  }

  #count(came: Came): void {
    this.open--;
    this.came.set(came, (this.came.get(came) ?? 0) + 1);
  }
}

interface Reports {
  answered(came: Came): void;
  /** The connection is closed. `wasBusy`: an answer was pending. `wasUsed`: earlier answers had come. */
  closed(wasBusy: boolean, wasUsed: boolean): void;
}

/** One connection. All its answers have a Content-Length. */
class Connection {
  readonly socket: Socket;
  readonly #reports: Reports;
  #head = Buffer.alloc(0);
  #came: Came | null = null;
  #left = 0;
  #isBusy = false;
  #answers = 0;

  constructor(socket: Socket, reports: Reports) {
    this.socket = socket;
    this.#reports = reports;
    socket.on('data', (data) => this.#take(data));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => reports.closed(this.#isBusy, this.#answers > 0 && this.#head.length === 0));
  }

  send(bytes: string): void {
    this.#isBusy = true;
    this.socket.write(bytes);
  }

  #take(data: Buffer): void {
    if (this.#came === null) {
      this.#head = Buffer.concat([this.#head, data]);
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return;
      const head = this.#head.toString('latin1', 0, end).toLowerCase();
      this.#came = cameOf(head);
      this.#left =
        Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1]) - (this.#head.length - end - HEAD_END.length);
    } else this.#left -= data.length;
    if (this.#left > 0) return;
    const came = this.#came;
    [this.#head, this.#came, this.#isBusy] = [Buffer.alloc(0), null, false];
    this.#answers++;
    this.#reports.answered(this.#left === 0 ? came : 'lost');
  }
}

function cameOf(head: string): Came {
  const status = Number(/^http\/1\.1 (\d{3})/.exec(head)?.[1]);
  if (status === 200) return 'whole';
  return [429, 503].includes(status) && head.includes('\r\nretry-after: ') ? 'refused' : `status ${status}`;
}
