/**
 * Lowest valid nonce of the account's margin and leverage changes, raised by a request that the owner signs.
 */
import { type Account, missingOption } from './account.ts'
import { encodeCall } from './chain/calls.ts'
import { signForwardRequest } from './forward-request.ts'
import type { HttpSession } from './http-session.ts'
import type { MarketData } from './market-data.ts'
import type { Signer } from './signers/signer.ts'

export interface MinimumMarginNonce {
  readonly market_id: number
  readonly address: string
  readonly perpetual_address: string
  readonly minimum_margin_nonce: string
  readonly next_forward_nonce: number
}

export interface InvalidatedMarginNonces {
  readonly success: boolean
  readonly market_id: number
  readonly perpetual_address: string
  readonly minimum_margin_nonce: string
  readonly tx_hash: string
}

export interface MarginNoncesOptions {
  readonly http: HttpSession
  readonly account: Account
  readonly marketData: Pick<MarketData, 'contracts' | 'market'>
  /** Signer of the account itself; null if there is none. */
  readonly signer: Signer | null
}

const GAS = 150_000
const LIFE_S = 600

export class MarginNonces {
  readonly #options: MarginNoncesOptions

  constructor(options: MarginNoncesOptions) {
    this.#options = options
  }

  async minimum(marketId: number): Promise<MinimumMarginNonce> {
    const { http, account } = this.#options
    return http.get('/v0/account/minimum-margin-nonce', { market_id: marketId, address: account.address })
  }

  /**
   * Invalidates signed changes with a lower nonce; returns once this is on chain. The same request is sent
   * until its outcome is known.
   */
  async invalidate(marketId: number, newMinimum: number): Promise<InvalidatedMarginNonces> {
    const { http, account, marketData, signer } = this.#options
    if (signer === null) return missingOption('privateKey (or signer)')
    const { trader_address: to } = await marketData.market(marketId)
    const { addressForwarder, chain_id } = await marketData.contracts()
    const request = {
      ...{ from: account.address, to, gas: GAS, deadline: Math.floor(Date.now() / 1000) + LIFE_S },
      nonce: (await this.minimum(marketId)).next_forward_nonce,
      data: encodeCall('invalidateMarginNonces(uint256)', newMinimum),
    }
    const signature = await signForwardRequest(signer, request, {
      ...{ chain_id, forwarder_address: addressForwarder },
    })
    const body = { market_id: marketId, new_minimum: `${newMinimum}`, ...request, signature }
    return http.post('/v0/account/invalidate-margin-nonces', body)
  }
}
