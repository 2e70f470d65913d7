/** The faucet: the api stores the request, the keeper signs and sends the payout, the api waits for its result. */
import type { Db } from '../../db/client.ts'
import {
  claimFaucetRequest,
  FAUCET_ANSWERS_CHANNEL,
  FAUCET_ERRORS,
  type FaucetLimits,
} from '../../db/faucet-requests.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import type { ErrorCode } from '../error-catalogue.ts'
import { ApiError } from '../errors.ts'
import type { StoredOutcomes } from '../stored-outcome.ts'

export interface FaucetGrant {
  readonly tx_hash: string
  readonly request_id: number
  readonly wallet: string
  readonly status: 'SIGNED' | 'MINED'
}

/** `from`: the network address of the request. */
export type Faucet = (caller: Caller, from: string) => Promise<FaucetGrant>

export interface FaucetPorts {
  readonly db: Db
  readonly clock: Clock
  readonly outcomes: StoredOutcomes
}

export interface FaucetOptions {
  readonly faucetWaitMs: number
  readonly faucetLimits: FaucetLimits
}

/** For which a signed payout is waited for: usually it is mined within milliseconds. */
const MINING_MS = 1_500

const EMPTY_RETRY_SECONDS = '60'
const FAILURES: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  [FAUCET_ERRORS.empty]: ['FAUCET_EMPTY', EMPTY_RETRY_SECONDS],
  [FAUCET_ERRORS.reverted]: ['FAUCET_REVERTED', '30'],
}

export function createFaucet({ db, clock, outcomes }: FaucetPorts, options: FaucetOptions): Faucet {
  const outcomeOf = outcomes.of(FAUCET_ANSWERS_CHANNEL)
  const find = (requestId: number) =>
    db
      .selectFrom('faucet_requests')
      .select(['status', 'tx_hash', 'error'])
      .where('request_id', '=', requestId)
      .executeTakeFirstOrThrow()

  return async ({ userId, address: wallet }, from) => {
    const now = clock.now()
    const claim = { userId, from, payload: { wallet }, now }
    const claimed = await claimFaucetRequest(db, claim, options.faucetLimits)
    if ('exceeded' in claimed) throw limitExceeded(claimed.exceeded, claimed.retryAt - now, options)
    const { requestId: request_id } = claimed
    const deadline = now + options.faucetWaitMs
    const sent = await outcomeOf(request_id, deadline, async () => {
      const row = await find(request_id)
      return row.status === 'REQUESTED' ? null : row
    })
    const ended = await outcomeOf(request_id, Math.min(deadline, clock.now() + MINING_MS), async () => {
      const row = sent === null ? null : await find(request_id)
      return row?.status === 'SIGNED' ? null : row
    })
    const { status, tx_hash, error } = ended ?? sent ?? {}
    if (status === 'FAILED') {
      const [code, retryAfter] = FAILURES[error ?? ''] ?? ['FAUCET_FAILED', '5']
      throw new ApiError(code, { faucet_request_id: request_id }, retryAfter)
    }
    if (!tx_hash || status === undefined || status === 'REQUESTED')
      throw new ApiError('FAUCET_PENDING', { faucet_request_id: request_id }, '2')
    return { tx_hash, request_id, wallet, status }
  }
}

function limitExceeded(
  scope: 'account' | 'address',
  waitMs: number,
  { faucetLimits }: FaucetOptions,
): ApiError {
  const { perAccount, perAddress, windowMs } = faucetLimits
  const most = scope === 'account' ? perAccount : perAddress
  const expected = `at most ${most} payouts in ${windowMs / 3_600_000} h`
  return new ApiError('FAUCET_LIMIT', { scope, expected }, String(Math.max(1, Math.ceil(waitMs / 1000))))
}
