/** Version of the state's tables and their layouts. Members of the engine with different versions run at once during an upgrade. */

/** Only digests and checkpoints of equal versions are compared. */
export const STATE_VERSION = 7

/** Digests of this version and earlier versions state none. */
const LAST_UNSTATED = 6

const STATED = /^(\d+)-/

/** The digest with its state version, for example `7-9f…`. */
export const versioned = (digest: string, version = STATE_VERSION): string =>
  version > LAST_UNSTATED ? `${version}-${digest}` : digest

const versionOf = (digest: string): number => Number(STATED.exec(digest)?.[1] ?? LAST_UNSTATED)

/** Whether the digests have equal state versions: only these differ if the states do. */
export const areComparable = (one: string, other: string): boolean => versionOf(one) === versionOf(other)

/** The digest without its version. */
export const hexOf = (digest: string): string => digest.replace(STATED, '')
