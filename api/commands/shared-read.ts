/** Reads things by their keys for many callers: one statement at a time, for all keys that have been requested meanwhile. */

export type SharedRead<Key, Found> = (key: Key) => Promise<Found | undefined>

/** `read` returns what it has found, by `keyOf`. */
export function createSharedRead<Key, Found>(
  keyOf: (key: Key) => string,
  read: (keys: readonly Key[]) => Promise<ReadonlyMap<string, Found>>,
): SharedRead<Key, Found> {
  let next: { readonly keys: Key[]; readonly found: Promise<ReadonlyMap<string, Found>> } | null = null
  let running: Promise<unknown> = Promise.resolve()

  return async (key) => {
    if (next === null) {
      const keys: Key[] = []
      const found = running.then(() => {
        next = null
        return read(keys)
      })
      running = found.catch(() => {})
      next = { keys, found }
    }
    next.keys.push(key)
    return (await next.found).get(keyOf(key))
  }
}
