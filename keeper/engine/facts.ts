/** Facts of publisher, ingest and workers that no row states. They are lost with the process: the senders repeat them. */
import type { SessionReport } from '../../domain/actions/action.ts'
import type { FreshnessLimits, Inputs } from '../../domain/exchange/inputs.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import { type MarketId, type Millis, maxOf } from '../../domain/units.ts'
import type { Role } from './link/messages.ts'

/** The newest verified reports of a market's feeds; null: there is none, or the feed is halted. */
export interface InformReports {
  readonly kind: 'inform_reports'
  readonly marketId: MarketId
  readonly report: OracleReport | null
  readonly session: SessionReport | null
}

/** The contract's rules for reports of the market. */
export interface InformRules {
  readonly kind: 'inform_rules'
  readonly marketId: MarketId
  readonly rules: ReportRules
}

/** Block time of the head; null while no node responds. */
export interface InformHead {
  readonly kind: 'inform_head'
  readonly time: Millis | null
}

/** The ingest has completed a pass over the chain's head. */
export interface InformPass {
  readonly kind: 'inform_pass'
  readonly at: Millis
}

export type Inform = InformReports | InformRules | InformHead | InformPass

export const INFORMERS: Readonly<Record<Inform['kind'], Role>> = {
  inform_reports: 'publisher',
  inform_rules: 'worker',
  inform_head: 'worker',
  inform_pass: 'ingest',
}

interface MarketFacts {
  report: OracleReport | null
  session: SessionReport | null
  rules: ReportRules | null
}

export class Facts {
  readonly #limits: FreshnessLimits
  readonly #markets = new Map<MarketId, MarketFacts>()
  #headTime: Millis | null = null
  #seenAt: Millis | null = null

  constructor(limits: FreshnessLimits) {
    this.#limits = limits
  }

  note(fact: Inform): void {
    switch (fact.kind) {
      case 'inform_reports': {
        const { report, session } = fact
        Object.assign(this.#of(fact.marketId), { report, session })
        return
      }
      case 'inform_rules':
        this.#of(fact.marketId).rules = fact.rules
        return
      case 'inform_head':
        this.#headTime = fact.time
        return
      case 'inform_pass':
        this.#seenAt = this.#seenAt === null ? fact.at : maxOf(this.#seenAt, fact.at)
    }
  }

  /** The inputs of a decision at the time. */
  inputsAt = (now: Millis): Inputs => ({
    now,
    report: (marketId) => this.#markets.get(marketId)?.report ?? null,
    session: (marketId) => this.#markets.get(marketId)?.session ?? null,
    reportRules: (marketId) => this.#markets.get(marketId)?.rules ?? null,
    headTime: this.#headTime,
    chainSeenAt: this.#seenAt,
    limits: this.#limits,
  })

  /** Whether the ingest has completed a pass since this process started. */
  isChainSeen = (): boolean => this.#seenAt !== null

  #of(marketId: MarketId): MarketFacts {
    let facts = this.#markets.get(marketId)
    if (facts === undefined) {
      facts = { report: null, session: null, rules: null }
      this.#markets.set(marketId, facts)
    }
    return facts
  }
}
