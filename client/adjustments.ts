/**
 * Changes margin and leverage of positions, through requests that the account or one of its session keys signs.
 */
import type { Account } from './account.ts'
import { type Decimal, fromE18, toE18 } from './decimals.ts'
import type { HttpSession } from './http-session.ts'
import type { MarketData } from './market-data.ts'
import { bookmarkQuery, type ReadOptions } from './queries.ts'
import type { Bookmark } from './responses.ts'
import type { SaltSequence } from './salts.ts'
import type { DigestSigner } from './signing.ts'
import { hashTypedData } from './typed-data.ts'

export type AdjustmentKind = 'adjust_leverage' | 'add_margin' | 'remove_margin'
export type AttemptStatus =
  | ('PREPARED' | 'SIGNED' | 'SUBMITTED')
  | ('COMMITTED' | 'ABORTED' | 'RECEIPT_RECONCILIATION_FAILED')

export type AdjustmentFailure =
  | 'receipt_decode_exception'
  | 'no_trade_execution_events'
  | 'trade_events_without_position_updates'
  | 'invalid_batch_trade_participant_coverage'
  | 'invalid_forced_book_liquidation_fill_coverage'
  | 'no_account_adjustment_position_updates'
  | 'no_liquidation_settlement_events'
  | 'backstop_inheritance_failed_only'
  | 'no_adl_settlement_events'
  | 'no_adl_trade_events'
  | 'missing_expected_participants'
  | 'missing_expected_position_updates'
  | 'invalid_position_update_participant_coverage'

export interface AdjustmentAttempt {
  readonly adjustment_id: string
  readonly user_id: number
  readonly market_id: number
  readonly kind: AdjustmentKind
  readonly status: AttemptStatus
  readonly amount_e18_raw: string
  readonly new_leverage_raw: string | null
  readonly tx_hash: string | null
  readonly failure_kind: AdjustmentFailure | null
  readonly failure_reason: string | null
  readonly created_at: string
  readonly updated_at: string
}

interface Adjusted {
  readonly success: boolean
  readonly adjustment_id: string
  readonly read_after: Bookmark
  readonly execution: { readonly relayer_id: string; readonly nonce: string; readonly tx_hash: string }
  readonly market_id: number
  readonly symbol: string
  readonly perpetual_address: string
  readonly tx_hash: string
  readonly called_by: string
  readonly gas_used?: string
}

export interface AdjustedMargin extends Adjusted {
  readonly amount: number
  readonly amount_e18_raw: string
  readonly max_removable_amount?: number
}

export interface AdjustedLeverage extends Adjusted {
  readonly cancelled_orders: number
  readonly recreated_orders: number
}

export interface RemovalOptions {
  /**
   * Removes the possible amount, up to `amount`. If absent, the removal moves the whole amount or nothing.
   */
  readonly upTo?: boolean
  /** Minimum moved amount; the request is refused below it. */
  readonly minAmount?: Decimal
}

export interface LeverageOptions {
  /** Maximum debit of the free balance; it is reserved in the meantime. Default: the available balance. */
  readonly maxMarginIn?: Decimal
  readonly minMarginOut?: Decimal
}

export interface AttemptOptions extends ReadOptions {
  readonly adjustmentId?: string
  readonly marketId?: number
  readonly kind?: AdjustmentKind
  readonly status?: AttemptStatus
  /** Time bounds, ISO 8601: inclusive for the first request, exclusive for the last. */
  readonly from?: string
  readonly to?: string
  readonly limit?: number
}

/** A signed request. Persist it before sending; the same request sent again is the same attempt. */
export interface SignedAdjustment {
  readonly path: '/v0/account/adjust-margin' | '/v0/account/adjust-leverage'
  readonly body: Readonly<Record<string, unknown>>
}

const field = (type: string, name: string) => ({ type, name })
const LIMITS = [field('uint256', 'nonce'), field('uint256', 'deadline')]
const TYPES = {
  AdjustMargin: [
    ...[field('address', 'account'), field('int256', 'amount'), field('uint8', 'removeMode')],
    ...[field('uint256', 'minAmount'), ...LIMITS],
  ],
  AdjustLeverage: [
    ...[field('address', 'account'), field('uint256', 'leverage')],
    ...[field('uint256', 'maxMarginIn'), field('uint256', 'minMarginOut'), ...LIMITS],
  ],
}

const LIFE_S = 60

export interface AdjustmentsOptions {
  readonly http: HttpSession
  readonly account: Account
  readonly marketData: MarketData
  readonly signer: DigestSigner | null
  /** Nonces of adjustments. Their order does not matter. */
  readonly nonces: SaltSequence
  readonly now?: () => number
}

export class Adjustments {
  readonly #options: AdjustmentsOptions

  constructor(options: AdjustmentsOptions) {
    this.#options = options
  }

  async addMargin(marketId: number, amount: Decimal): Promise<AdjustedMargin> {
    return this.send(await this.signMargin(marketId, toE18(amount)))
  }

  async removeMargin(
    marketId: number,
    amount: Decimal,
    options: RemovalOptions = {},
  ): Promise<AdjustedMargin> {
    return this.send(await this.signMargin(marketId, -toE18(amount), options))
  }

  /** Cancels the account's open orders in the market first. */
  async adjustLeverage(
    marketId: number,
    leverage: number,
    options: LeverageOptions = {},
  ): Promise<AdjustedLeverage> {
    return this.send(await this.signLeverage(marketId, leverage, options))
  }

  /** `amount` in wei: positive adds, negative removes. */
  async signMargin(
    marketId: number,
    amount: bigint,
    { upTo = false, minAmount = 0 }: RemovalOptions = {},
  ): Promise<SignedAdjustment> {
    const least = toE18(minAmount)
    const values = { amount, removeMode: upTo ? 1 : 0, minAmount: least }
    const body = await this.#sign('AdjustMargin', marketId, values)
    const mode = { remove_mode: upTo ? 'up_to' : 'exact', min_amount: fromE18(least) }
    return { path: '/v0/account/adjust-margin', body: { ...body, amount: fromE18(amount), ...mode } }
  }

  async signLeverage(
    marketId: number,
    leverage: number,
    { maxMarginIn, minMarginOut = 0 }: LeverageOptions = {},
  ): Promise<SignedAdjustment> {
    const most = maxMarginIn === undefined ? await this.#available() : toE18(maxMarginIn)
    const least = toE18(minMarginOut)
    const values = { leverage: toE18(leverage), maxMarginIn: most, minMarginOut: least }
    const body = await this.#sign('AdjustLeverage', marketId, values)
    const limits = { max_margin_in_e18_raw: `${most}`, min_margin_out_e18_raw: `${least}` }
    return { path: '/v0/account/adjust-leverage', body: { ...body, leverage, ...limits } }
  }

  /**
   * Sends a request. It is retried after an unknown outcome, within the budget, because the same request is
   * the same attempt.
   */
  async send<Answer extends AdjustedMargin | AdjustedLeverage>({ path, body }: SignedAdjustment) {
    return this.#options.http.post<Answer>(path, body)
  }

  async attempts(options: AttemptOptions = {}): Promise<readonly AdjustmentAttempt[]> {
    const { adjustmentId: adjustment_id, marketId: market_id, kind, status, from, to, limit } = options
    const query = { adjustment_id, market_id, kind, status, from, to, limit, ...bookmarkQuery(options) }
    const path = '/v0/account/adjustment-attempts'
    return (await this.#options.http.get<{ attempts: readonly AdjustmentAttempt[] }>(path, query)).attempts
  }

  async #available(): Promise<bigint> {
    const available = BigInt((await this.#options.account.balance()).available_e18_raw)
    return available > 0n ? available : 0n
  }

  /** Adds the shared fields of both requests and signs. */
  async #sign(type: keyof typeof TYPES, marketId: number, values: Readonly<Record<string, bigint | number>>) {
    const { account, marketData, signer, nonces, now = Date.now } = this.#options
    if (signer === null) throw new TypeError('this call needs the client option privateKey or orderSigner')
    const { symbol, chain_id, trader_address } = await marketData.market(marketId)
    const nonce = nonces.next()
    const deadline = Math.floor(now() / 1000) + LIFE_S
    const domain = {
      name: 'IsolatedTrader',
      version: '2.0',
      chainId: chain_id,
      verifyingContract: trader_address,
    }
    const message = { account: account.address, ...values, nonce, deadline }
    const digest = hashTypedData({ domain, primaryType: type, types: TYPES, message })
    const signature = `${await signer.signDigest(digest)}01`
    return {
      symbol,
      market_id: marketId,
      address: account.address,
      nonce: Number(nonce),
      deadline,
      signature,
    }
  }
}
