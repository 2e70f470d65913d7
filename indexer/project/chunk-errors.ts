/**
 * Distinguishes errors of a chunk's rows from other errors. After an error of rows, smaller chunks find the failing
 * shard.
 */

/**
 * SQL state classes that do not depend on the chunk: connection, transaction state, rollback, resources, lock not
 * available, operator intervention, system error.
 */
const OTHER_CLASSES = new Set(['08', '25', '40', '53', '55', '57', '58'])
/** The driver reports a lost connection without a code. */
const LOST_CONNECTION = /connection (terminated|timeout|closed)|client has encountered|not queryable/i

export function isOfRows(error: unknown): boolean {
  const { code, message = '' } = error as { readonly code?: string; readonly message?: string }
  if (LOST_CONNECTION.test(message)) return false
  if (code === undefined) return true
  return /^[0-9A-Z]{5}$/.test(code) && !OTHER_CLASSES.has(code.slice(0, 2))
}
