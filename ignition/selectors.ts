/** Selectors of the functions in the role table of stack/access.ts, for calls of the access manager. */
import type { Interface } from 'ethers'
import type { Restricted } from '../stack/access.ts'
import { AggregatorOracle__factory } from '../typechain-types/factories/AggregatorOracle__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'

const INTERFACES: Readonly<Record<Restricted, Interface>> = {
  MarginBank: MarginBank__factory.createInterface(),
  IsolatedTrader: IsolatedTrader__factory.createInterface(),
  SignedPriceOracle: SignedPriceOracle__factory.createInterface(),
  AggregatorOracle: AggregatorOracle__factory.createInterface(),
  Backstop: Backstop__factory.createInterface(),
}

export const selectorsOf = (name: Restricted, functions: readonly string[]): string[] =>
  functions.map((each) => {
    const fragment = INTERFACES[name].getFunction(each)
    if (fragment === null) throw new Error(`${name} has no function ${each}`)
    return fragment.selector
  })
