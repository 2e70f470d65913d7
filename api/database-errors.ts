/** What the errors of the database mean for a caller. */
import { isOutdatedPlan } from '../db/prepared.ts'

/** A transport failure or a server that is going down: SQLSTATE class 08 and 57P, or a socket error. */
export function isConnectionError(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  if (code !== undefined) return /^(08|57P|53[0-9]|E[A-Z]{4,})/.test(code)
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered|not queryable|Query read timeout/i.test(
    message ?? '',
  )
}

/** Another transaction was in the way, or a change of the schema: the same one can succeed at once. */
export function isContention(error: unknown): boolean {
  const { code = '', constraint } = error as { code?: string; constraint?: string }
  // A twin of the same client request was first: its answer is there now.
  const hasTwin = code === '23505' && constraint === 'client_requests_pkey'
  return ['40001', '40P01'].includes(code) || hasTwin || isOutdatedPlan(error)
}

/** A lock was not given in time, or the statement took too long. */
export const isTimeout = (error: unknown): boolean =>
  ['55P03', '57014'].includes((error as { code?: string }).code ?? '')
