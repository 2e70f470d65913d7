/** A market's state except positions and balances (see `audit.ts`), rebuilt from its events and compared with its views. */
import { expect } from 'chai'
import type { LogDescription, Result } from 'ethers'
import { ACTION_LIFETIME, CANCEL_GRACE } from '../../../domain/settlement/durations.ts'
import { decodeBatchSettled } from '../../../domain/settlement/settlement-codec.ts'
import { type Exchange, fieldsOf } from '../../support/exchange.ts'

type Fields = Record<string, unknown>

const plain = (struct: unknown): Fields => fieldsOf(struct as Result) as unknown as Fields
const NEVER_CHANGED = { settled: 0n, requested: 0n, requestedAt: 0n, marginNonce: 0n }
const MILLIONTH = 10n ** 12n
const SETTLING = 3n

/** An action of the market's sequence, as in its event. */
interface Action {
  readonly actionId: bigint
  readonly asOf: bigint
  readonly isBatch?: boolean
}

interface Pending {
  parameters: Fields
  parametersFrom: bigint
  mode: bigint
  modeFrom: bigint
  restriction: bigint
  restrictionFrom: bigint
}

export class MarketReplay {
  readonly exchange: Exchange
  #authority = ''
  #grid: Fields = {}
  #parameters: Fields = {}
  readonly #pending: Pending = {
    parameters: {},
    parametersFrom: 0n,
    mode: 0n,
    modeFrom: 0n,
    restriction: 0n,
    restrictionFrom: 0n,
  }
  readonly #operators = new Map<string, bigint>()
  #risk = { backstop: `0x${'0'.repeat(40)}`, backstopCap: 0n }
  readonly #clock = {
    actionId: 0n,
    batchId: 0n,
    asOf: 0n,
    part: 0n,
    parts: 0n,
    price: 0n,
    makerFee: 0n,
    takerFee: 0n,
  }
  #reference = { oraclePrice: 0n, observedAt: 0n, fundingIndex: 0n }
  #funding = { rate: 0n, validFrom: 0n, validUntil: 0n }
  readonly #floors = new Map<string, typeof NEVER_CHANGED>()
  readonly #usedNonces = new Set<string>()
  readonly #cancelled = new Set<string>()
  #poked = { price: 0n, observedAt: 0n }
  readonly #ending = {
    ...{ expiresAt: 0n, settlingAt: 0n, disputeWindow: 0n },
    ...{ reportedAt: 0n, observedAt: 0n, price: 0n },
  }
  #heartbeatAt = 0n
  #freezeRequestedAt = 0n

  constructor(exchange: Exchange) {
    this.exchange = exchange
  }

  // -------------------------------------------------------------------- events

  /** Throws for an event without a handler. */
  follow(event: LogDescription, at: bigint, data: { topics: readonly string[]; data: string }): void {
    if (event.name === 'BatchSettled') {
      this.#batch(data)
      return
    }
    const handler = this.#handlers[event.name]
    if (handler === undefined) throw new Error(`no handler for the market's event ${event.name}`)
    // A new schedule of the mode first stores the changes that are due at block time.
    if (event.name === 'ModeScheduled' || event.name === 'ModeRestricted') this.#storeDue(at * 1000n)
    handler(event.args)
  }

  readonly #handlers: Readonly<Record<string, (args: Result) => void>> = {
    AuthorityUpdated: ({ authority }) => {
      this.#authority = authority
    },
    MarketCreated: ({ grid }) => {
      this.#grid = plain(grid)
      Object.assign(this.#ending, { expiresAt: grid.expiresAt, disputeWindow: grid.disputeWindow })
    },
    ParametersChanged: ({ parameters }) => {
      this.#parameters = plain(parameters)
    },
    ParametersScheduled: ({ parameters, activeFrom }) => {
      Object.assign(this.#pending, { parameters: plain(parameters), parametersFrom: activeFrom })
    },
    ScheduledParametersCancelled: () => {
      this.#pending.parametersFrom = 0n
    },
    ModeScheduled: ({ mode, activeFrom }) => {
      Object.assign(this.#pending, { mode, modeFrom: activeFrom })
      this.#ending.settlingAt = mode === SETTLING ? activeFrom : 0n
    },
    ModeRestricted: ({ mode, activeFrom }) => {
      // It drops a scheduled mode that is less strict.
      if (this.#pending.mode < mode) this.#pending.modeFrom = 0n
      Object.assign(this.#pending, { restriction: mode, restrictionFrom: activeFrom })
    },
    OperatorChanged: ({ operator, status }) => void this.#operators.set(operator, status),
    BackstopChanged: ({ backstop, cap }) => {
      this.#risk = { backstop, backstopCap: cap }
    },
    FundingUpdated: ({ actionId, asOf, rate, validUntil, fundingIndex, oraclePrice, observedAt }) => {
      this.#begin({ actionId, asOf })
      this.#reference = { oraclePrice, observedAt, fundingIndex }
      this.#funding = { rate, validFrom: asOf, validUntil }
    },
    PositionInherited: (args) => this.#riskAction(args),
    BackstopInheritanceFailed: (args) => this.#riskAction(args),
    PositionsDeleveraged: (args) => this.#riskAction(args),
    MarketFrozen: (args) => this.#end(args),
    MarketFinalized: (args) => this.#end(args),
    MarginAdjusted: ({ account, nonce }) => void this.#usedNonces.add(`${account} ${nonce}`),
    LeverageAdjusted: ({ account, nonce }) => void this.#usedNonces.add(`${account} ${nonce}`),
    MarginNoncesInvalidated: ({ account, newMinimum }) => {
      this.#floors.set(account, { ...this.#floorsOf(account), marginNonce: newMinimum })
    },
    SaltsCancelled: ({ maker, salts }) => {
      for (const salt of salts) this.#cancelled.add(`${maker} ${salt}`)
    },
    SaltsCancelledBelow: ({ maker, floor, requestedAt }) => {
      const standing = this.#floorsOf(maker)
      const isRipe = requestedAt > standing.requestedAt + BigInt(CANCEL_GRACE + ACTION_LIFETIME)
      const settled = isRipe ? standing.requested : standing.settled
      this.#floors.set(maker, { ...standing, settled, requested: floor, requestedAt })
    },
    ExpiryExtended: ({ expiresAt }) => {
      this.#ending.expiresAt = expiresAt
    },
    DisputeWindowExtended: ({ disputeWindow }) => {
      this.#ending.disputeWindow = disputeWindow
    },
    FinalPriceReported: ({ price, observedAt, replaceableUntil }) => {
      const reportedAt = replaceableUntil - this.#ending.disputeWindow
      Object.assign(this.#ending, { price, observedAt, reportedAt })
    },
    // The audit compares claims.
    InsolvencyReported: () => undefined,
    HaircutFixed: () => undefined,
    Claimed: () => undefined,
    PricePoked: ({ price, observedAt }) => {
      this.#poked = { price, observedAt }
    },
    Heartbeat: ({ heartbeatAt }) => {
      this.#heartbeatAt = heartbeatAt
    },
    FreezeRequested: ({ requestedAt }) => {
      this.#freezeRequestedAt = requestedAt
    },
  }

  #floorsOf(account: string): typeof NEVER_CHANGED {
    return this.#floors.get(account) ?? NEVER_CHANGED
  }

  /** An action stores every change that is due at its `asOf`. */
  #storeDue(time: bigint): void {
    for (const from of ['parametersFrom', 'modeFrom', 'restrictionFrom'] as const) {
      if (time >= this.#pending[from]) this.#pending[from] = 0n
    }
  }

  #begin({ actionId, asOf, isBatch = false }: Action): void {
    const clock = this.#clock
    this.#storeDue(asOf)
    if (!isBatch || asOf !== clock.asOf) clock.parts = clock.part
    Object.assign(clock, { actionId, asOf })
  }

  /** The mode of a market that has ended is SETTLED; no separate event announces it. */
  #end({ actionId, asOf }: Result): void {
    this.#begin({ actionId, asOf })
    this.#parameters = { ...this.#parameters, mode: 4n }
  }

  #riskAction({ actionId, terms }: Result): void {
    const { asOf, oraclePrice, observedAt, fundingIndex } = terms
    this.#begin({ actionId, asOf })
    this.#reference = { oraclePrice, observedAt, fundingIndex }
  }

  #batch({ topics, data }: { topics: readonly string[]; data: string }): void {
    const settled = decodeBatchSettled(topics, data, this.exchange.spec)
    this.#begin({ actionId: BigInt(settled.actionId), asOf: BigInt(settled.asOf), isBatch: true })
    Object.assign(this.#clock, {
      batchId: BigInt(settled.batchId),
      part: BigInt(settled.part),
      parts: BigInt(settled.parts),
      price: BigInt(settled.price),
      makerFee: settled.makerFee / MILLIONTH,
      takerFee: settled.takerFee / MILLIONTH,
    })
    const { oraclePrice, observedAt, fundingIndex } = settled
    this.#reference = { oraclePrice, observedAt: BigInt(observedAt), fundingIndex }
  }

  // -------------------------------------------------------------------- views

  async compare(): Promise<void> {
    const { trader } = this.exchange
    expect(await trader.authority()).to.equal(this.#authority)
    expect(plain(await trader.grid()), 'grid').to.deep.equal(this.#grid)
    expect(plain(await trader.parameters()), 'parameters').to.deep.equal(this.#parameters)
    expect(plain(await trader.clock()), 'clock').to.deep.include(this.#clock)
    expect(plain(await trader.lastReference()), 'reference').to.deep.include(this.#reference)
    expect(plain(await trader.fundingRate()), 'funding rate').to.deep.equal(this.#funding)
    expect(plain(await trader.riskTerms()), 'backstop').to.deep.equal(this.#risk)
    expect(plain(await trader.poked()), 'poked').to.deep.equal(this.#poked)
    expect(plain(await trader.ending()), 'ending').to.deep.equal(this.#ending)
    const windDown = await trader.windDown()
    expect([windDown.heartbeatAt, windDown.requestedAt]).to.deep.equal([
      this.#heartbeatAt,
      this.#freezeRequestedAt,
    ])
    await this.#comparePending()
    await this.#compareAccounts()
  }

  async #comparePending(): Promise<void> {
    const found = await this.exchange.trader.pendingChange()
    const waiting = (change: Pending) => ({
      parameters: change.parametersFrom === 0n ? null : { ...change.parameters, mode: null },
      parametersFrom: change.parametersFrom,
      mode: change.modeFrom === 0n ? null : change.mode,
      modeFrom: change.modeFrom,
      restriction: change.restrictionFrom === 0n ? null : change.restriction,
      restrictionFrom: change.restrictionFrom,
    })
    const read = { ...plain(found), parameters: plain(found.parameters) } as unknown as Pending
    expect(waiting(read), 'pending change').to.deep.equal(waiting(this.#pending))
  }

  async #compareAccounts(): Promise<void> {
    const { trader, users } = this.exchange
    for (const [operator, status] of this.#operators) {
      expect(await trader.operatorStatus(operator)).to.equal(status)
    }
    for (const { address } of users) {
      expect(plain(await trader.floors(address)), `floors of ${address}`).to.deep.equal(
        this.#floorsOf(address),
      )
      for (let nonce = 0; nonce < 12; nonce++) {
        const isUsed = this.#usedNonces.has(`${address} ${nonce}`)
        expect(await trader.isMarginNonceUsed(address, nonce), `nonce ${nonce}`).to.equal(isUsed)
      }
      for (let salt = 0; salt < 120; salt += 7) {
        const isCancelled = this.#cancelled.has(`${address} ${salt}`)
        expect((await trader.saltState(address, salt)) === 3n, `salt ${salt}`).to.equal(isCancelled)
      }
    }
  }
}
