/** Accepts an adjustment by the engine. From its acceptance on the account takes part in no batch and no action of the market. */
import { type AttemptRow, findByDigest } from '../../db/adjustments.ts'
import type { Db } from '../../db/client.ts'
import { hasLiveLease } from '../../db/leases.ts'
import { ADJUSTMENT_LANE } from '../../db/relayers.ts'
import type { AdjustRefusal } from '../../domain/exchange/decide/orders/adjust.ts'
import type { UserId } from '../../domain/units.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Caller } from '../auth/caller.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'
import type { AdjustmentRequest } from './parse.ts'
import { refusalError } from './refusals.ts'

export interface PreparePorts {
  readonly db: Db
  readonly killPoint: KillPointHook<'after-adjustment-prepared'>
  readonly engine: EngineCalls
}

/** The request's attempt: new, or prepared earlier by the same request. Throws an ApiError if it is refused. */
export async function prepare(
  { db, engine, killPoint }: PreparePorts,
  { userId }: Caller,
  request: AdjustmentRequest,
): Promise<AttemptRow> {
  const { spec, digest, nonce, signed } = request
  const { marketId } = spec
  const known = await findByDigest(db, marketId, digest)
  if (known !== undefined) return known
  const answer = await engine.ask({
    kind: 'adjust',
    userId: userId as UserId,
    marketId,
    digest,
    nonce,
    signed,
    hasLane: await hasLiveLease(db, ADJUSTMENT_LANE),
  })
  if (answer.kind === 'refused') throw adjustmentError(answer.refusal, request)
  const attempt = (await findByDigest(db, marketId, digest)) as AttemptRow
  killPoint('after-adjustment-prepared')
  return attempt
}

function adjustmentError(refusal: AdjustRefusal, { spec, digest }: AdjustmentRequest): ApiError {
  switch (refusal.code) {
    case 'USER_NOT_FOUND':
    case 'MARKET_NOT_FOUND':
      throw new Error(`the api sent an adjustment that the engine cannot have: ${refusal.code}`)
    case 'ADJUSTMENTS_UNAVAILABLE':
      return new ApiError('ADJUSTMENTS_UNAVAILABLE', {}, '5')
    case 'ADJUSTMENT_IN_FLIGHT': {
      const { adjustmentId: adjustment_id, status } = refusal
      return new ApiError('ADJUSTMENT_IN_FLIGHT', { adjustment_id, status }, '1')
    }
    case 'ADJUSTER_UNAUTHORIZED':
    case 'SESSION_KEY_REVOKED':
    case 'SESSION_KEY_REVOKING':
    case 'SESSION_KEY_EXPIRED':
    case 'SESSION_KEY_NOT_PERMITTED': {
      const { code, recovered, expected, ...more } = refusal
      return new ApiError(code, {
        field: 'signature',
        recovered_signer: recovered,
        expected_signer: expected,
        digest,
        ...more,
      })
    }
    case 'CHAIN_UNSEEN':
      return new ApiError('CHAIN_UNSEEN', { last_seen_ms: refusal.lastSeen }, '1')
    default:
      return refusalError(refusal, spec)
  }
}
