/** Error codes of registering and revoking session keys. */
import type { ErrorCode } from '../error-catalogue.ts'

export const KEY_ERRORS: readonly ErrorCode[] = [
  'SESSION_KEY_ZERO',
  'SESSION_KEY_IS_ACCOUNT',
  'SESSION_KEY_REGISTERED',
  'SESSION_KEY_PENDING',
  'SESSION_KEY_LIMIT',
  'SESSION_KEY_NOT_FOUND',
  'SESSION_KEY_REVOKED',
]
