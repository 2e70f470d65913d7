/**
 * The compiler without IR takes a tenth of the time, but rejects functions with too many local variables. These are rewritten with
 * fewer variables and the same behaviour. A rewriting that does not fit a mutant leaves its code as it is.
 */

type Rewriting = (code: string) => string

/** Applies `rewrite` to one function of a file. */
const inFunction =
  (name: string, rewrite: Rewriting): Rewriting =>
  (file) => {
    const start = file.indexOf(`function ${name}(`)
    const end = file.indexOf('\n    }\n', start)
    return start < 0 ? file : file.slice(0, start) + rewrite(file.slice(start, end)) + file.slice(end)
  }

/** `(a.mode, a.imr, …) = (b.mode, b.imr, …)` takes a variable per field. */
const FIELDS =
  /\(adjustment\.mode, adjustment\.imr, adjustment\.mmr, adjustment\.maxLeverage\) =\s+\((\w+)\.mode, \w+\.imr, \w+\.mmr, \w+\.maxLeverage\);/g

const PARTIAL_FILL =
  'state.partialSlots[slotKey(maker, body.slot())] = (salt << 112) | ((filled + fill) << 64) | batchId;'
const STORE_PARTIAL_FILL = `
    function _storeShare(TraderState storage state, RecordHead head, RecordBody body, uint256 filled, uint256 batchId) private {
        state.partialSlots[slotKey(head.maker(), body.slot())] =
            (body.salt() << 112) | ((filled + head.fill()) << 64) | batchId;
    }
`

const REWRITINGS: Readonly<Record<string, readonly Rewriting[]>> = {
  'contracts/IsolatedTrader.sol': [
    inFunction('_settleRun', (code) =>
      code
        .replace('Word storage place = _state.positions[account];\n', '')
        .replaceAll('place.bits', '_state.positions[account].bits')
        .replace('PartTerms memory terms = settlement.terms;\n', '')
        .replaceAll('terms.', 'settlement.terms.')
        .replaceAll(' terms,', ' settlement.terms,'),
    ),
  ],
  'contracts/libraries/AdjustLib.sol': [
    inFunction('adjustLeverage', (code) =>
      code
        .replace('Word storage place = state.positions[account];\n', '')
        .replace('place.bits', 'state.positions[account].bits')
        .replace('_move(place', '_move(state.positions[account]'),
    ),
    inFunction('_loadContext', (code) =>
      code.replace(FIELDS, (_, from) =>
        ['mode', 'imr', 'mmr', 'maxLeverage']
          .map((field) => `adjustment.${field} = ${from}.${field};`)
          .join(' '),
      ),
    ),
  ],
  'contracts/libraries/LiquidationLib.sol': [
    inFunction('inheritPosition', (code) =>
      code
        .replace('int256 fundingIndex = action.reference_.fundingIndex;\n', '')
        .replace('Position memory held = _load(state, terms.backstop, fundingIndex);\n', '')
        .replace('inherit(held,', 'inherit(_load(state, terms.backstop, fundingIndex),')
        .replaceAll('fundingIndex)', 'action.reference_.fundingIndex)'),
    ),
  ],
  'contracts/libraries/SaltLib.sol': [
    (file) =>
      file.includes(PARTIAL_FILL)
        ? file
            .replace(PARTIAL_FILL, '_storeShare(state, head, body, filled, batchId);')
            .replace(/\}\n$/, `${STORE_PARTIAL_FILL}}\n`)
        : file,
  ],
}

export const shallow = (path: string, code: string): string =>
  (REWRITINGS[path] ?? []).reduce((rewritten, rewrite) => rewrite(rewritten), code)
