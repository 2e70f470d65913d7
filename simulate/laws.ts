/** The laws that a scenario must keep. Each is checked by figures of its own, not by the function whose result it checks. */

export const LAWS = {
  pool: "a market's pool = Σ (margin + unrealised profit) at every price",
  sizes: 'the sizes of all positions of a market sum to zero',
  conserved: 'Σ free + Σ pools + fees = deposits, and no free balance is negative',
  deficits: 'after the ladder no equity is negative that is not a recorded deficit',
  'flat-never-pays': 'no account pays without opening, except the backstop for what it inherits',
  'over-deleveraging': 'a deleveraging closes at most one step more than needed',
  threshold: 'no account is liquidated at or above its threshold',
  scanned: 'every position below the threshold is in liquidation',
  ladder: 'a liquidation takes the step that the order of the ladder requires',
  pieces: 'a forced order closes all of a small position, and a fifth of a large one',
  widened: 'each batch that leaves a forced order unfilled widens its protection',
  'orders-end': 'an account in liquidation has no order in the market except its forced one',
  grace: 'no account with equity is liquidated in the grace after a pause of the bank',
  ranked: 'no better ranked counterparty is passed over',
  enough: 'a deleveraging closes what is needed, as far as counterparties and pool suffice',
  backed: 'after an inheritance that makes its position larger, the backstop meets IMR and is within its cap',
  accepted: 'the chain refuses nothing that the keeper sends',
  'left-out':
    'the auction leaves out only forced orders of healthy positions, and closes that the pool cannot pay',
  'pool-waits': 'a close waits for the pool only while a position has negative equity in the band',
  protected:
    'a market order fills within its price protection, measured from a standing quote of another account',
  margined: 'after its fills, an account that has opened meets IMR',
  reserved: 'no account reserves more than its free balance',
  covered: 'a part costs an account at most what is held for its fills',
  're-reserved': "an order reserves for at least the steps that open beside its account's position",
  'reduce-only': 'a reduce-only order in the book has a position to reduce',
  contracts:
    'the contracts accept what their twins accept, and reject what these reject, with equal results to the wei',
  mined: 'matched positions are those of the chain once everything sent is executed',
} as const

export type Law = keyof typeof LAWS
export const LAW_NAMES = Object.keys(LAWS) as Law[]
