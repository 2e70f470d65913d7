/** Checks that the signer of an adjustment may act for the account: the account itself, or an active session key that may change margin. */
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { type SigningKey, signerRefusal } from '../../domain/session-keys/session-key.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'

export interface AdjustmentSigner {
  readonly account: Address
  readonly signer: Address
  readonly digest: string
}

/** Throws an ApiError if the chain would refuse the signer, or if the account has requested the revocation of its key. */
export async function checkSigner(
  tx: Tx,
  { account, signer, digest }: AdjustmentSigner,
  now: Millis,
): Promise<void> {
  if (signer === account) return
  const context = { field: 'signature', recovered_signer: signer, expected_signer: account, digest }
  const { rows } = await sql<SigningKey>`
    select permissions, expires_at, revoked_at, exists (
      select from relay_operations o
      where o.owner = k.owner and o.session_key = k.key and o.kind = 'revoke_session_key' and o.status <> 'CONFIRMED'
    ) as is_revoking
    from session_keys k where owner = ${account} and key = ${signer}
  `.execute(tx)
  const [key] = rows
  if (key === undefined) throw new ApiError('ADJUSTER_UNAUTHORIZED', context)
  const refusal = signerRefusal(key, 'margin', now)
  if (refusal === null) return
  const { code, ...facts } = refusal
  throw new ApiError(code === 'SESSION_KEY_REVOKING' ? 'SESSION_KEY_REVOKED' : code, { ...context, ...facts })
}
