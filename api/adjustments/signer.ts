/** Checks that the signer of an adjustment may act for the account: the account itself, or an active session key that may change margin. */
import type { Tx } from '../../db/client.ts'
import { loadSigningKey } from '../../db/session-keys.ts'
import { signerRefusal } from '../../domain/session-keys/session-key.ts'
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
  const key = await loadSigningKey(tx, { owner: account, key: signer })
  if (key === null) throw new ApiError('ADJUSTER_UNAUTHORIZED', context)
  const refusal = signerRefusal(key, 'margin', now)
  if (refusal === null) return
  const { code, ...facts } = refusal
  throw new ApiError(code, { ...context, ...facts })
}
