/** Collects the changes of many messages into one update per frame. A hidden tab has no frames, so a timer ends the wait there. */

const HIDDEN_MS = 500

export function perFrame(update: () => void): () => void {
  let waiting = false
  const run = (): void => {
    if (!waiting) return
    waiting = false
    update()
  }
  return () => {
    if (waiting) return
    waiting = true
    if (document.hidden) setTimeout(run, HIDDEN_MS)
    else requestAnimationFrame(run)
  }
}
