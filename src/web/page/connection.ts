/** Notices when the server is gone, and when it is back. */
import { element } from './dom.ts';

const LOOK_MS = 2500;

/** Looks at the server every few seconds while the page is in sight. `isBack`: it answers again. */
export function watchServer(isBack: () => void): void {
  const away = element('away');
  const look = async () => {
    const isGone = document.hidden ? !away.hidden : !(await isAnswering());
    if (!isGone && !away.hidden) isBack();
    away.hidden = !isGone;
    setTimeout(() => void look(), LOOK_MS);
  };
  void look();
}

async function isAnswering(): Promise<boolean> {
  try {
    const { status } = await fetch('/livez', { cache: 'no-store', signal: AbortSignal.timeout(2 * LOOK_MS) });
    return status < 500; // proxies answer 502 or 504 in its place
  } catch {
    return false; // whatever the reason, it did not answer
  }
}
