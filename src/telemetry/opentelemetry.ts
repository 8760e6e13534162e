import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import type * as Api from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { codeOf } from '../base/error-reason.ts';
import type { Log } from '../base/log.ts';
import type { Span, SpanBeginning, SpanFacts, SpanKind, Tracer } from '../base/span.ts';
import { VERSION } from '../base/version.ts';
import { TRACEPARENT } from './request-log.ts';

/** The optional packages of OpenTelemetry that send traces. This file alone loads them. */
const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-proto',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace-base',
];
/** The most parts of one name that a span has. A stream may read and wait a million times. */
const MOST_PARTS = 200;
/** How long a stop waits for the collector. Milliseconds. */
const FLUSH_MS = 3_000;

const modules = createRequire(import.meta.url);

interface TracingSettings {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  /** Whether a trace that its caller does not sample is never sampled here. */
  readonly samplesByParent: boolean;
}

/**
 * Connects to the collector of the settings. Null: they name none, or packages are missing, which is logged. Everything
 * else (sampler, headers, limits, attributes of the resource) OpenTelemetry reads from OTEL_* variables by itself.
 */
export function openTracer(settings: TracingSettings, log: Log): Tracer | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, samplesByParent } = settings;
  if (endpoint === undefined) return null;
  const missing = PACKAGES.filter((name) => !isInstalled(name));
  if (missing.length === 0) return new OpenTelemetry(endpoint, samplesByParent, log);
  const words = `traces are not sent: packages that OTEL_EXPORTER_OTLP_ENDPOINT needs are missing; install them with: npm install ${missing.join(' ')}`;
  log.warn({ missing }, words);
  return null;
}

function isInstalled(name: string): boolean {
  try {
    modules.resolve(name);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    return false;
  }
}

/** The libraries, loaded when the first tracer needs them. */
function load() {
  return {
    api: modules('@opentelemetry/api') as typeof import('@opentelemetry/api'),
    sdk: modules('@opentelemetry/sdk-trace-base') as typeof import('@opentelemetry/sdk-trace-base'),
    resources: modules('@opentelemetry/resources') as typeof import('@opentelemetry/resources'),
    otlp: modules(
      '@opentelemetry/exporter-trace-otlp-proto',
    ) as typeof import('@opentelemetry/exporter-trace-otlp-proto'),
  };
}

type Libraries = ReturnType<typeof load>;

/** The port to traces on OpenTelemetry. It registers nothing globally. */
class OpenTelemetry implements Tracer {
  readonly #api: Libraries['api'];
  readonly #provider: { shutdown(): Promise<void> };
  readonly #tracer: Api.Tracer;
  readonly #samplesByParent: boolean;

  constructor(endpoint: string, samplesByParent: boolean, log: Log) {
    const { api, sdk, otlp, ...libraries } = load();
    const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
    const exporter = loggedOnce(new otlp.OTLPTraceExporter({ url }), log);
    const provider = new sdk.BasicTracerProvider({
      resource: resourceOf(libraries),
      spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
    });
    this.#api = api;
    this.#provider = provider;
    this.#tracer = provider.getTracer('sluice', VERSION);
    this.#samplesByParent = samplesByParent;
  }

  begin(parent: string | undefined, beginning: () => SpanBeginning): Span | null {
    const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(parent ?? '') ?? NO_PARENT;
    const traceFlags = parseInt(flags, 16) & 1;
    // The library needs more than a microsecond to say so, which is more than 1 % of a page.
    if (traceId !== '' && traceFlags === 0 && this.#samplesByParent) return null;
    const { trace, ROOT_CONTEXT } = this.#api;
    const outside =
      traceId === ''
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
    const span = startSpan(this.#api, this.#tracer, beginning(), outside);
    return span.isRecording() ? new OpenTelemetrySpan(this.#api, this.#tracer, span, outside) : null;
  }

  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_MS);
    });
    await Promise.race([this.#provider.shutdown(), late]).finally(() => clearTimeout(timer));
  }
}

const NO_PARENT: readonly string[] = [];

const KINDS = { internal: 'INTERNAL', server: 'SERVER', client: 'CLIENT' } as const satisfies Record<
  SpanKind,
  string
>;

function startSpan(
  api: Libraries['api'],
  tracer: Api.Tracer,
  { name, kind, facts }: SpanBeginning,
  outside: Api.Context,
): Api.Span {
  return tracer.startSpan(name, { kind: api.SpanKind[KINDS[kind]], attributes: facts }, outside);
}

class OpenTelemetrySpan implements Span {
  readonly #api: Libraries['api'];
  readonly #tracer: Api.Tracer;
  readonly #span: Api.Span;
  readonly #inside: Api.Context;
  /** How many parts there were of each name. */
  readonly #parts = new Map<string, number>();
  #leftOut = 0;

  constructor(api: Libraries['api'], tracer: Api.Tracer, span: Api.Span, outside: Api.Context) {
    this.#api = api;
    this.#tracer = tracer;
    this.#span = span;
    this.#inside = api.trace.setSpan(outside, span);
  }

  get traceparent(): string {
    const { traceId, spanId } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  part(beginning: SpanBeginning): Span {
    const before = this.#parts.get(beginning.name) ?? 0;
    this.#parts.set(beginning.name, before + 1);
    if (before < MOST_PARTS) {
      const span = startSpan(this.#api, this.#tracer, beginning, this.#inside);
      return new OpenTelemetrySpan(this.#api, this.#tracer, span, this.#inside);
    }
    this.#leftOut++;
    return { traceparent: this.traceparent, part: (one) => this.part(one), end: () => undefined };
  }

  end(facts: SpanFacts = {}, fault?: string): void {
    this.#span.setAttributes(facts);
    if (this.#leftOut > 0) this.#span.setAttribute('sluice.parts_left_out', this.#leftOut);
    if (fault !== undefined)
      this.#span.setAttribute('error.type', fault).setStatus({ code: this.#api.SpanStatusCode.ERROR });
    this.#span.end();
  }
}

/** What the spans are of. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before it. */
function resourceOf({ resources }: Pick<Libraries, 'resources'>) {
  const own = resources.resourceFromAttributes({
    'service.name': 'sluice',
    'service.version': VERSION,
    'service.instance.id': randomUUID(),
  });
  const given = resources.detectResources({ detectors: [resources.envDetector] });
  return resources.defaultResource().merge(own).merge(given);
}

/** An exporter whose failures are logged when they begin and when they end. What cannot be sent is lost. */
function loggedOnce(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const { error } = result;
        const fails = error !== undefined;
        if (fails && !isFailing) log.warn({ err: error }, 'traces cannot be sent, and are lost');
        if (!fails && isFailing) log.info({}, 'traces are sent again');
        isFailing = fails;
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}
