/** One market on an exchange that is deployed: a module of its own, made from the market's description. */
import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'
import { feedsOf, gridOf, parametersOf } from '../stack/deploy.ts'
import { contractOf, type Deployment } from './deployment.ts'
import { assignRoles } from './exchange.ts'
import type { MarketFile } from './market-file.ts'

export const marketModuleId = (marketId: number): string => `Market${marketId}`

/** How much of a market its deployer can do: only put its code there, or wire and announce it too, or list it at once as well. */
export type Reach = 'code' | 'announced' | 'listed'

/**
 * Wiring and announcing take the roles of the set-up; what is left out, `missingCalls` names. Operators are proposed: they accept
 * with their own keys.
 */
export const marketModule = (deployment: Deployment, file: MarketFile, reach: Reach) =>
  buildModule(marketModuleId(file.spec.marketId), (m) => {
    const { spec, oracle: feeds, operators, backstopCap } = file
    const at = <Name extends string>(name: Name) => m.contractAt(name, contractOf(deployment, name))
    const [access, bank, oracle, backstop] = [
      at('ExchangeAccess'),
      at('MarginBank'),
      at('SignedPriceOracle'),
      at('Backstop'),
    ]
    const others = [bank, at('AccountManager'), oracle, at('Forwarder'), access, at('MarketExtension')]
    const terms = [gridOf(spec), parametersOf(spec, file.reports), ...others]
    const trader = m.contract('IsolatedTrader', terms)
    if (reach === 'code') return { trader }

    for (const [index, feed] of feedsOf(spec).entries()) {
      m.call(oracle, 'setFeed', [feed, [...feeds.signers], feeds.threshold], { id: `feed_${index}` })
    }
    for (const operator of operators) {
      m.call(trader, 'proposeOperator', [operator], { id: `operator_${operator}` })
    }
    if (backstopCap > 0n) {
      const backed = m.call(backstop, 'setBacked', [trader, true])
      m.call(trader, 'setBackstop', [backstop, backstopCap], { after: [backed] })
    }
    assignRoles(m, access, 'IsolatedTrader', trader)
    const announced = m.call(bank, 'announceMarket', [trader])
    if (reach === 'listed') m.call(bank, 'listMarket', [trader], { after: [announced] })
    return { trader }
  })
