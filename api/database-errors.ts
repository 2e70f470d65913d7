/** Classifies database errors: connection, timeout. */

/** A transport failure or a server that is going down: SQLSTATE class 08 and 57P, or a socket error. */
export function isConnectionError(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  if (code !== undefined) return /^(08|57P|53[0-9]|E[A-Z]{4,})/.test(code)
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered|not queryable|Query read timeout/i.test(
    message ?? '',
  )
}

/** A lock timeout or a statement timeout. */
export const isTimeout = (error: unknown): boolean =>
  ['55P03', '57014'].includes((error as { code?: string }).code ?? '')
