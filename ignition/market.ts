/** The Ignition module of one market, built from its description, for an exchange that is deployed. */
import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'
import { feedsOf, gridOf, parametersOf } from '../stack/deploy.ts'
import { contractOf, type Deployment } from './deployment.ts'
import { assignRoles } from './exchange.ts'
import type { MarketFile } from './market-file.ts'

export const marketModuleId = (marketId: number): string => `Market${marketId}`

/** Steps that the deployer's roles allow: deploy the code; also configure and announce the market. */
export type Reach = 'code' | 'announced'

/**
 * Configures and announces with the deployer's roles; `missingCalls` lists the remaining calls. Operators accept with
 * their own keys before the bank lists the market.
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
    m.call(bank, 'announceMarket', [trader])
    return { trader }
  })
