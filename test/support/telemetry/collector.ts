import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';

/** A span as a collector receives it. Ids are hexadecimal; `parent` is empty for the first one of a trace. */
export interface ReceivedSpan {
  readonly trace: string;
  readonly id: string;
  readonly parent: string;
  readonly name: string;
  readonly kind: number;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly facts: Readonly<Record<string, string | number>>;
  /** 2: an error. */
  readonly status: number;
  /** The attributes of the resource. */
  readonly of: Readonly<Record<string, string | number>>;
}

export interface Collector {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** All that came, as it came. */
  readonly bytes: readonly Buffer[];
  /** Resolves when these spans, as `isAll` looks at them, have come. */
  until(isAll: (spans: readonly ReceivedSpan[]) => boolean): Promise<void>;
}

/** An endpoint of OTLP over HTTP that decodes what is sent to it (protobuf, opentelemetry/proto/trace/v1/trace.proto). */
export async function startCollector(t: TestContext): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const bytes: Buffer[] = [];
  const waiting = new Set<() => void>();
  const server: Server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const sent = Buffer.concat(pieces);
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
      const isRight =
        request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf';
      response.writeHead(isRight ? 200 : 400, { 'content-type': 'application/x-protobuf' }).end();
      if (!isRight) return;
      bytes.push(body);
      spans.push(...spansOf(body));
      for (const look of waiting) look();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const until: Collector['until'] = (isAll) =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isAll(spans)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return { url: `http://127.0.0.1:${port}`, spans, bytes, until };
}

interface Field {
  readonly number: number;
  /** Varints and fixed numbers. */
  readonly value: bigint;
  /** The content of a message, a string or bytes. */
  readonly bytes: Buffer;
}

const NO_BYTES = Buffer.alloc(0);

/** The fields of a message of Protocol Buffers. */
function* fieldsOf(message: Buffer): Generator<Field, void, undefined> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    switch (tag & 7) {
      case 0:
        yield { number, value: varint(), bytes: NO_BYTES };
        break;
      case 1:
        yield { number, value: message.readBigUInt64LE(at), bytes: message.subarray(at, (at += 8)) };
        break;
      case 2: {
        const length = Number(varint());
        yield { number, value: 0n, bytes: message.subarray(at, (at += length)) };
        break;
      }
      case 5:
        yield { number, value: BigInt(message.readUInt32LE(at)), bytes: message.subarray(at, (at += 4)) };
        break;
      default:
        throw new Error(`a field of type ${tag & 7}`);
    }
  }
}

const messages = (message: Buffer, number: number): Buffer[] =>
  [...fieldsOf(message)].filter((field) => field.number === number).map(({ bytes }) => bytes);

/** ExportTraceServiceRequest: resource_spans 1; ResourceSpans: resource 1, scope_spans 2; ScopeSpans: spans 2. */
function spansOf(request: Buffer): ReceivedSpan[] {
  return messages(request, 1).flatMap((ofResource) => {
    const [resource = NO_BYTES] = messages(ofResource, 1);
    const of = factsOf(messages(resource, 1));
    return messages(ofResource, 2).flatMap((scope) => messages(scope, 2).map((span) => spanOf(span, of)));
  });
}

/** Span: trace_id 1, span_id 2, parent_span_id 4, name 5, kind 6, start 7, end 8, attributes 9, status 15 (code 3). */
function spanOf(message: Buffer, of: ReceivedSpan['of']): ReceivedSpan {
  const all = [...fieldsOf(message)];
  const of1 = (number: number) => all.find((field) => field.number === number);
  const hex = (number: number) => of1(number)?.bytes.toString('hex') ?? '';
  const [status] = messages(message, 15);
  const code = status && [...fieldsOf(status)].find(({ number }) => number === 3);
  return {
    trace: hex(1),
    id: hex(2),
    parent: hex(4),
    name: of1(5)?.bytes.toString() ?? '',
    kind: Number(of1(6)?.value ?? 0n),
    start: of1(7)?.value ?? 0n,
    end: of1(8)?.value ?? 0n,
    facts: factsOf(messages(message, 9)),
    status: Number(code?.value ?? 0n),
    of,
  };
}

/** KeyValue: key 1, value 2; AnyValue: string 1, bool 2, int 3, double 4. */
function factsOf(attributes: readonly Buffer[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map((attribute) => {
      const [key = NO_BYTES] = messages(attribute, 1);
      const [any = NO_BYTES] = messages(attribute, 2);
      const [value] = [...fieldsOf(any)];
      const read = value?.number === 4 ? value.bytes.readDoubleLE() : Number(value?.value ?? 0n);
      return [key.toString(), value?.number === 1 ? value.bytes.toString() : read];
    }),
  );
}
