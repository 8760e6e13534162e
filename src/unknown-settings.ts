import { SETTINGS } from './settings.ts';
import { distance } from './terminal/text.ts';

/** What begins the names that others give to settings of a server: `HTTP_PORT`. */
const PREFIXES = ['SLUICE', 'HTTP', 'HTTPS', 'SERVER', 'LISTEN', 'BIND', 'APP', 'NODE', 'WEB'];
const SAME: Readonly<Record<string, string>> = { URL: 'URI', MONGO: 'MONGODB' };
/** Variables of Kubernetes and of linked containers, by name and by value: `SLUICE_PORT=tcp://10.0.0.1:3000`. */
const OF_SERVICES = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_/;
const ADDRESS = /^(tcp|udp|sctp):\/\//;

interface Name {
  readonly name: string;
  readonly words: readonly string[];
}

const KNOWN: readonly Name[] = Object.keys(SETTINGS.properties).map((name) => ({
  name,
  words: wordsOf(name),
}));

/**
 * Returns a sentence for each variable of an environment that looks like a setting, and is none: an effect that the
 * operator expects of it does not come. Values are not shown.
 */
export function unknownSettings(environment: NodeJS.ProcessEnv): readonly string[] {
  return Object.entries(environment).flatMap(([name, value = '']) => {
    const isOther =
      value === '' || name in SETTINGS.properties || OF_SERVICES.test(name) || ADDRESS.test(value);
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
  const words = wordsOf(name);
  const own = words.findIndex((word) => !PREFIXES.includes(word));
  const forms = Array.from({ length: own + 1 }, (_, at) => words.slice(at)); // as it is, and without what begins it
  const near = ({ words: known }: Name) =>
    forms.some((form) => distance(form.join(''), known.join('')) <= Math.floor(form.join('').length / 4));
  // API_KEYS and CORS_ALLOW_ORIGIN: the last word is missing, or there is another word behind the first.
  const alike = (known: Name) =>
    known.words.length > 1 &&
    forms.some((form) => known.words[0] === form[0] && form.length > 1 && isWithin(known.words, form));
  const begun = (known: Name) => words.length > 1 && known.name.startsWith(`${name}_`);
  return (KNOWN.find(near) ?? KNOWN.find(alike) ?? KNOWN.find(begun))?.name;
}

/** The words of a name, in the singular and with one spelling for what has two. */
function wordsOf(name: string): string[] {
  return name
    .split('_')
    .map((word) => SAME[word] ?? (word.length > 3 ? word.replace(/IES$/, 'Y').replace(/S$/, '') : word));
}

/** Whether some words stand in the others, in this order, with one other at most. */
function isWithin(words: readonly string[], others: readonly string[]): boolean {
  let at = 0;
  for (const other of others) if (other === words[at]) at++;
  return at === words.length && others.length <= words.length + 1;
}
