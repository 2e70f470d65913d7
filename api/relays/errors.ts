/** Error codes of operations that accept a signed forward request. */
import type { ErrorCode } from '../error-catalogue.ts'

export const FORWARD_ERRORS: readonly ErrorCode[] = [
  'NOT_YOURS',
  'SIGNATURE_FORMAT',
  'SIGNATURE_V',
  'SIGNATURE_HIGH_S',
  'SIGNATURE_UNRECOVERABLE',
  'FORWARD_REQUEST_MISMATCH',
  'FORWARD_DEADLINE',
  'FORWARD_SIGNATURE_MISMATCH',
  'FORWARD_NONCE_USED',
  'FORWARD_NONCE_TAKEN',
  'FORWARD_NONCE_GAP',
  'RELAY_LIMIT',
  'RELAY_UNAVAILABLE',
]
