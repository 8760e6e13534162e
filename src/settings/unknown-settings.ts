import { SETTINGS } from './settings.ts';
import { distance } from '../terminal/text.ts';

/** What begins the names that others give to settings of a server: `HTTP_PORT`. */
const PREFIX = /^(SLUICE|HTTPS?|SERVER|LISTEN|BIND|APP|NODE|WEB)_/;
/** Variables of Kubernetes and of linked containers, by name and by value: `SLUICE_PORT=tcp://10.0.0.1:3000`. */
const OF_SERVICES = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_/;
const ADDRESS = /^(tcp|udp|sctp):\/\//;

const SETTING_NAMES = Object.keys(SETTINGS.properties);

/** A sentence for each variable of an environment that looks like a setting, and is none. Values are not shown. */
export function unknownSettings(environment: NodeJS.ProcessEnv): readonly string[] {
  return Object.entries(environment).flatMap(([name, value = '']) => {
    const isOther =
      value === '' || SETTING_NAMES.includes(name) || OF_SERVICES.test(name) || ADDRESS.test(value);
    if (isOther || !/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/.test(name)) return [];
    const near = nearest(name, value);
    if (near !== undefined && (environment[near] ?? '') === '')
      return [`${name} is no setting, and has no effect. Did you mean ${near}?`];
    if (!name.startsWith('SLUICE_')) return [];
    return [`${name} is no setting, and has no effect: sluice serve --help lists the settings.`];
  });
}

/** The setting that a name or a value is probably meant for. */
function nearest(name: string, value: string): string | undefined {
  if (/^(MONGO|DB|DATABASE)/.test(name) && /^mongodb(\+srv)?:\/\//.test(value)) return 'MONGODB_URI';
  const forms = [name, name.replace(PREFIX, '')];
  return (
    SETTING_NAMES.find((known) => forms.some((form) => isNear(form, known))) ??
    SETTING_NAMES.find((known) => name.includes('_') && known.startsWith(`${name}_`)) // API_KEYS
  );
}

/** Every start compares each variable with each setting, so most are told apart by their lengths. */
function isNear(form: string, known: string): boolean {
  const most = Math.floor(form.length / 4);
  return Math.abs(form.length - known.length) <= most && distance(form, known) <= most;
}
