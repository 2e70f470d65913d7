/** The client's own types are those of the description. The compiler checks each pair. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import ts from 'typescript'
import { liveTypes, restTypes } from '../../package/generate-types.ts'

/** A type of the client, and the described one: `X` of REST, `Y` of the live feed. */
const EQUAL: Readonly<Record<string, string>> = {
  Level: "X['Level']",
  Orderbook: "X['Book']",
  PlacedOrder: "X['Order']",
  Fill: "X['Fill']",
  Balance: "X['Balance']",
  MarginBalance: "X['MarginBalance']['balance']",
  Position: "X['Position']",
  Placement: "X['PlaceOrderAnswer']",
  Cancellation: "X['CancelAnswer']",
  SweepCancellation: "X['CancelAllAnswer']",
  CancelSwitch: "X['SwitchAnswer']",
  Auction: "X['Auction']",
  SharedContracts: "X['SharedContracts']",
  FaucetPayout: "X['FaucetAnswer']",
  Transaction: "X['Transaction']",
  Withdrawal: "X['Withdrawal']",
  WithdrawalPage: "X['Withdrawals']",
  Me: "X['Me']",
  FillStage: "X['FillStage']",
  FillProcessing: "X['FillProcessing']",
  PublicFill: "X['PublicFill']",
  Market: "X['Market']",
  ServerTime: "X['ServerTime']",
  ServiceStatus: "X['ServiceStatus']",
  FundingRate: "X['FundingRate']",
  MarketRisk: "X['MarketRisk']",
  Liquidation: "X['Liquidation']",
  LiquidationDecision: "X['LiquidationStep']",
  OrderCommitment: "X['Commitment']",
  Candle: "X['Candle']",
  CandlePage: "X['Candles']",
  MarketStats: "X['MarketStats']",
  Ticker: "X['Ticker']",
  OpenInterestPoint: "X['OpenInterestPoint']",
  RecordedPosition: "X['RecordedPosition']",
  ProfitPoint: "X['ProfitPoint']",
  ProfitPage: "X['Profits']",
  AdjustmentAttempt: "X['Attempt']",
  AdjustedMargin: "X['AdjustMarginAnswer']",
  AdjustedLeverage: "X['AdjustLeverageAnswer']",
  SessionKeyOperation: "X['OperationView']",
  PreparedOperation: "X['Prepared']",
  SessionKeyList: "X['SessionKeys']",
  MinimumMarginNonce: "X['Minimum']",
  InvalidatedMarginNonces: "X['Invalidated']",
  BookData: "Y['bookSnapshot']['data']",
  TradesData: "Y['tradesUpdate']['data']",
  "Subscribed['data']": "Y['subscribed']['data']",
}
/** The description has a text where the client lists the words. */
const NARROWER: Readonly<Record<string, string>> = {
  Validation: "X['ValidateAnswer']",
  OrderEvent: "X['OrderEvent']",
  Estimate: "X['Estimate']",
  QuantityForBudget: "X['Quantity']",
  UserData: "Y['userUpdate']['data']",
}
/** The client has a text or fewer fields: error codes, and statements that only the verifier reads. */
const WIDER: Readonly<Record<string, string>> = {
  BatchCancellation: "X['CancelBatchAnswer']",
  BatchProof: "X['BatchProof']",
}

const rows = (pairs: Readonly<Record<string, string>>, relation: string): string[] =>
  Object.entries(pairs).map(([own, described]) => `  "${own}": ${relation}<Client.${own}, ${described}>`)

const PROGRAM = `
import type { components as Rest } from './rest.ts'
import type { components as Live } from './live.ts'
import type * as Client from '${resolve('package/entries/types.ts')}'
type X = Rest['schemas']
type Y = Live['schemas']
type Narrower<Own, Described> = [Own] extends [Described] ? true : 'the client permits more than the description'
type Wider<Own, Described> = [Described] extends [Own] ? true : 'the description permits more than the client'
type Equal<Own, Described> = Narrower<Own, Described> extends true ? Wider<Own, Described> : Narrower<Own, Described>
export interface Pairs {
${[...rows(EQUAL, 'Equal'), ...rows(NARROWER, 'Narrower'), ...rows(WIDER, 'Wider')].join('\n')}
}
`

/** By pair: `true`, or how it differs. */
function pairsOf(files: ReadonlyMap<string, string>, options: ts.CompilerOptions): Record<string, string> {
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => files.has(path) || fileExists(path)
  delete host.directoryExists
  host.readFile = (path) => files.get(path) ?? readFile(path)
  host.getSourceFile = (path, language) => {
    const text = files.get(path)
    return text === undefined ? getSourceFile(path, language) : ts.createSourceFile(path, text, language)
  }
  const program = ts.createProgram([...files.keys()], options, host)
  const checker = program.getTypeChecker()
  const found: Record<string, string> = {}
  program.getSourceFile('/virtual/pairs.ts')?.forEachChild((node) => {
    if (!ts.isInterfaceDeclaration(node)) return
    for (const { name, type } of node.members.filter(ts.isPropertySignature))
      found[(name as ts.StringLiteral).text] = checker.typeToString(
        checker.getTypeAtLocation(type as ts.Node),
      )
  })
  const unresolved = program
    .getSemanticDiagnostics(program.getSourceFile('/virtual/pairs.ts'))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
  return unresolved.length === 0 ? found : { unresolved: unresolved.join('; ') }
}

const describedIn = (file: string) => JSON.parse(readFileSync(file, 'utf8'))

describe('types of the package', function () {
  this.timeout(120_000)
  let pairs: Record<string, string>

  before(async () => {
    const files = new Map([
      ['/virtual/rest.ts', await restTypes(describedIn('docs/openapi.json'))],
      ['/virtual/live.ts', await liveTypes(describedIn('docs/asyncapi.json'))],
      ['/virtual/pairs.ts', PROGRAM],
    ])
    pairs = pairsOf(files, {
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: [],
      lib: ['lib.es2024.d.ts', 'lib.dom.d.ts'],
      target: ts.ScriptTarget.ES2024,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      allowImportingTsExtensions: true,
    })
  })

  it('when the client has a type of its own for an answer or a message, it is the described one', () => {
    const expected = [EQUAL, NARROWER, WIDER].flatMap((each) => Object.keys(each))
    expect(pairs).to.deep.equal(Object.fromEntries(expected.map((name) => [name, 'true'])))
  })
})
