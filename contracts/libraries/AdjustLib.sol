// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {IAdjustments} from "../interfaces/IAdjustments.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {MarketKind, MarketMode, Parameters} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Position} from "../types/Position.sol";
import {Report} from "../types/Report.sol";
import {Reference, TraderState, Word} from "../types/TraderState.sol";
import {ActionKind, ActionLib} from "./ActionLib.sol";
import {BandLib} from "./BandLib.sol";
import {EndingLib} from "./EndingLib.sol";
import {FundingLib} from "./FundingLib.sol";
import {LedgerCall} from "./LedgerCall.sol";
import {MarginLib} from "./MarginLib.sol";
import {PositionLib} from "./PositionLib.sol";

/**
 * @title Margin and leverage adjustments by the owner of a position. Twin of domain/positions/adjustment.ts
 * @dev Arithmetic on measured amounts is unchecked (row U14 in contracts/README.md): positions come from storage, and
 * requirements are bounded as in `MarginLib`. Signed amounts may be any number: they are only compared, and an amount that moves
 * fits 96 bits.
 */
library AdjustLib {
    // ------------------------------------------------------------------ types

    /// @dev Position, prices and requirements that an adjustment is checked against. `…X` are wei x 1e18, requirements
    /// millionths.
    struct AdjustmentContext {
        MarketMode mode;
        uint256 imr;
        uint256 mmr;
        uint256 maxLeverage;
        Position position;
        /// As of `asOf`.
        int256 fundingIndex;
        int256 equityX;
        uint256 notionalX;
        uint256 step;
        bool binary;
    }

    // ------------------------------------------------------------------ constants

    bytes32 internal constant MARGIN_TYPEHASH = keccak256(
        "AdjustMargin(address account,int256 amount,uint8 removeMode,uint256 minAmount,uint256 nonce,uint256 deadline)"
    );
    bytes32 internal constant LEVERAGE_TYPEHASH = keccak256(
        "AdjustLeverage(address account,uint256 leverage,uint256 maxMarginIn,uint256 minMarginOut,uint256 nonce,uint256 deadline)"
    );
    uint256 internal constant NONCE_END = 1 << 64;
    /// @dev Permission bit of session keys.
    uint256 private constant CHANGE_MARGIN = 2;
    uint256 private constant ONE = 1e18;
    uint256 private constant MILLION = 1e6;

    // ------------------------------------------------------------------ adjustments

    /// @notice See `IAdjustments.adjustMargin`.
    function adjustMargin(
        TraderState storage state,
        MarketContext memory context,
        uint256 asOf,
        AdjustMargin calldata signed,
        Report calldata report,
        bytes calldata signature
    ) internal {
        // Check: signature, nonce, deadline, and what the position allows.
        address account = signed.account;
        Word storage place = state.positions[account];
        uint256 word = place.bits;
        _useNonce(state, account, signed.nonce, word);
        _requireInTime(account, signed.deadline, asOf);
        address signer = _requireSigner(context, account, hashMargin(context.domainSeparator, signed), signature, asOf);
        AdjustmentContext memory adjustment;
        _loadContext(adjustment, state, context, word, report, asOf);
        int256 moved = marginToMove(adjustment, signed);
        ActionLib.requireMode(adjustment.mode, moved > 0 ? ActionKind.AddMargin : ActionKind.RemoveMargin);

        // Effect: position, then free balance.
        int256 folded = _move(place, context, word, account, moved);
        emit IAdjustments.MarginAdjusted(account, signer, signed.nonce, asOf, moved, folded);
        ActionLib.requireTimely(asOf);
    }

    /// @notice See `IAdjustments.adjustLeverage`.
    function adjustLeverage(
        TraderState storage state,
        MarketContext memory context,
        uint256 asOf,
        AdjustLeverage calldata signed,
        Report calldata report,
        bytes calldata signature
    ) internal {
        address account = signed.account;
        Word storage place = state.positions[account];
        uint256 word = place.bits;
        _useNonce(state, account, signed.nonce, word);
        _requireInTime(account, signed.deadline, asOf);
        address signer = _requireSigner(context, account, hashLeverage(context.domainSeparator, signed), signature, asOf);
        AdjustmentContext memory adjustment;
        _loadContext(adjustment, state, context, word, report, asOf);
        ActionLib.requireMode(adjustment.mode, ActionKind.ChangeLeverage);
        int256 moved = marginForLeverage(adjustment, signed);

        uint256 leverage = signed.leverage / ONE;
        int256 folded = _move(place, context, PositionLib.withLeverage(word, leverage), account, moved);
        emit IAdjustments.LeverageAdjusted(account, signer, signed.nonce, asOf, leverage, moved, folded);
        ActionLib.requireTimely(asOf);
    }

    /// @notice See `IAdjustments.invalidateMarginNonces`.
    function invalidateNonces(TraderState storage state, address account, uint256 newMinimum) internal {
        uint256 minimum = state.floors[account].marginNonce;
        if (newMinimum <= minimum) revert IAdjustments.MarginNonceMinimumNotRaised(account, minimum, newMinimum);
        if (newMinimum > NONCE_END) revert IAdjustments.MarginNonceTooLarge(account, newMinimum);
        state.floors[account].marginNonce = uint96(newMinimum);
        state.positions[account].bits |= PositionLib.FLOORS_BIT;
        emit IAdjustments.MarginNoncesInvalidated(account, newMinimum);
    }

    // ------------------------------------------------------------------ nonce, deadline, signature

    /// @param word The account's packed position: `FLOORS_BIT` is set if the floor slot must be read.
    function _useNonce(TraderState storage state, address account, uint256 nonce, uint256 word) private {
        if (nonce >= NONCE_END) revert IAdjustments.MarginNonceTooLarge(account, nonce);
        uint256 minimum = word & PositionLib.FLOORS_BIT != 0 ? state.floors[account].marginNonce : 0;
        if (nonce < minimum) revert IAdjustments.MarginNonceBelowMinimum(account, minimum, nonce);
        Word storage place = state.marginNonces[nonceKey(account, nonce)];
        uint256 bit = 1 << (nonce & 255);
        uint256 used = place.bits;
        if (used & bit != 0) revert IAdjustments.MarginNonceUsed(account, nonce);
        place.bits = used | bit;
    }

    function isNonceUsed(TraderState storage state, address account, uint256 nonce) internal view returns (bool) {
        return nonce < NONCE_END && (state.marginNonces[nonceKey(account, nonce)].bits >> (nonce & 255)) & 1 == 1;
    }

    /// @notice Key of the word that has the nonce's bit, at `nonce & 255`. For nonces below `NONCE_END`.
    function nonceKey(address account, uint256 nonce) internal pure returns (uint256) {
        return (uint256(uint160(account)) << 96) | (nonce >> 8);
    }

    /// @dev `asOf` may lie ACTION_LIFETIME behind block time, so an adjustment can be mined that long after its deadline.
    function _requireInTime(address account, uint256 deadline, uint256 asOf) private pure {
        if ((asOf + 999) / 1000 > deadline) revert IAdjustments.DeadlinePassed(account, deadline, asOf);
    }

    function hashMargin(bytes32 domainSeparator, AdjustMargin calldata signed) internal pure returns (bytes32) {
        uint256 from;
        assembly ("memory-safe") {
            from := signed
        }
        return _hash(domainSeparator, MARGIN_TYPEHASH, from);
    }

    function hashLeverage(bytes32 domainSeparator, AdjustLeverage calldata signed) internal pure returns (bytes32) {
        uint256 from;
        assembly ("memory-safe") {
            from := signed
        }
        return _hash(domainSeparator, LEVERAGE_TYPEHASH, from);
    }

    /// @dev Both structs are six words and are hashed as they are in calldata. Fields narrower than a word are checked when they
    /// are read. Uses memory above the free memory pointer.
    function _hash(bytes32 domainSeparator, bytes32 typeHash, uint256 from) private pure returns (bytes32) {
        bytes32 structHash;
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, typeHash)
            calldatacopy(add(data, 32), from, 192)
            structHash := keccak256(data, 224)
        }
        return MessageHashUtils.toTypedDataHash(domainSeparator, structHash);
    }

    function _requireSigner(
        MarketContext memory context,
        address account,
        bytes32 digest,
        bytes calldata signature,
        uint256 asOf
    ) private view returns (address signer) {
        if (signature.length == 66 && signature[65] == 0x01) {
            signature = signature[:65];
            digest = MessageHashUtils.toEthSignedMessageHash(digest);
        }
        ECDSA.RecoverError problem;
        // Rejects other lengths, high s values and the zero address.
        (signer, problem,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (problem != ECDSA.RecoverError.NoError) revert IAdjustments.AdjustmentSignatureInvalid(account);
        if (signer != account && !context.accountManager.isAuthorized(account, signer, CHANGE_MARGIN, asOf)) {
            revert IAdjustments.AdjusterUnauthorized(account, signer);
        }
    }

    // ------------------------------------------------------------------ amounts

    /// @notice Margin that moves into the position; negative: out of it. Reverts if the rules do not allow the adjustment.
    function marginToMove(AdjustmentContext memory adjustment, AdjustMargin calldata signed)
        internal
        pure
        returns (int256 moved)
    {
        address account = signed.account;
        int256 amount = signed.amount;
        if (signed.removeMode > 1 || (signed.removeMode == 1 && amount > 0)) {
            revert IAdjustments.RemoveModeInvalid(account, signed.removeMode);
        }
        if (adjustment.position.size == 0) revert IAdjustments.NoPosition(account);
        uint256 moves;
        if (amount > 0) {
            moves = uint256(amount);
            _requireAdditionEnough(adjustment, account, moves);
        } else {
            uint256 asked;
            unchecked { // U15
                asked = uint256(-amount);
            }
            uint256 most = maxRemovable(adjustment);
            if (signed.removeMode == 0 && asked > most) revert IAdjustments.RemovalTooLarge(account, most, asked);
            moves = asked < most ? asked : most;
            if (moves == 0) revert IAdjustments.NothingMoves(account);
        }
        if (moves < signed.minAmount) revert IAdjustments.AmountBelowMinimum(account, signed.minAmount, moves);
        return amount > 0 ? int256(moves) : -int256(moves);
    }

    function _requireAdditionEnough(AdjustmentContext memory adjustment, address account, uint256 amount) private pure {
        unchecked { // U14
            uint256 trigger = adjustment.mmr + MarginLib.LIQUIDATION_BUFFER;
            if (adjustment.equityX * MarginLib.MILLION >= int256(adjustment.notionalX * trigger)) return;
            uint256 needed = uint256(-_surplus(adjustment.equityX, _initialRequirement(adjustment)));
            if (amount < needed) revert IAdjustments.AdditionInsufficient(account, needed, amount);
        }
    }

    /// @notice The most margin that can be removed, rounded down: afterwards the ratio >= max(IMR, 1 / leverage), the margin is
    /// not negative, and a fully collateralised binary position remains so. For an account with a position.
    function maxRemovable(AdjustmentContext memory adjustment) internal pure returns (uint256) {
        Position memory position = adjustment.position;
        uint256 requiredX = _initialRequirement(adjustment);
        uint256 atLeverageX = _divUp(adjustment.notionalX, position.leverage);
        int256 most = _surplus(adjustment.equityX, atLeverageX > requiredX ? atLeverageX : requiredX);
        int256 margin = position.margin;
        if (adjustment.binary) {
            int256 loss = _maximumLoss(adjustment);
            unchecked { // U14
                if (margin >= loss && loss > 0) margin -= loss;
            }
        }
        if (margin < most) most = margin;
        return most > 0 ? uint256(most) : 0;
    }

    /// @notice Margin that moves into the position to bring equity to notional / leverage; negative: out of it, at most the
    /// position's margin.
    function marginForLeverage(AdjustmentContext memory adjustment, AdjustLeverage calldata signed)
        internal
        pure
        returns (int256)
    {
        uint256 leverage = signed.leverage / ONE;
        if (signed.leverage % ONE != 0 || leverage == 0 || leverage > adjustment.maxLeverage) {
            revert IAdjustments.LeverageInvalid(signed.account, adjustment.maxLeverage * ONE, signed.leverage);
        }
        int256 spare = _surplus(adjustment.equityX, _divUp(adjustment.notionalX, leverage));
        uint256 needed = spare < 0 ? uint256(-spare) : 0;
        int256 margin = adjustment.position.margin;
        int256 free = margin < spare ? margin : spare;
        uint256 available = free > 0 ? uint256(free) : 0;
        if (needed > signed.maxMarginIn) {
            revert IAdjustments.MarginInTooLarge(signed.account, signed.maxMarginIn, needed);
        }
        if (available < signed.minMarginOut) {
            revert IAdjustments.MarginOutTooSmall(signed.account, signed.minMarginOut, available);
        }
        return int256(needed) - int256(available);
    }

    /// @dev Maximum loss of a binary position: its entry notional for a long, size x 1 - entry notional for a short.
    function _maximumLoss(AdjustmentContext memory adjustment) private pure returns (int256) {
        int256 entry = int256(adjustment.position.entryNotional);
        int256 size = adjustment.position.size;
        unchecked { // U14
            return size > 0 ? entry : -size * int256(adjustment.step) - entry;
        }
    }

    function _initialRequirement(AdjustmentContext memory adjustment) private pure returns (uint256) {
        unchecked { // U14
            return _divUp(adjustment.notionalX * adjustment.imr, MILLION);
        }
    }

    /// @dev Equity - requirement in whole wei, rounded down.
    function _surplus(int256 equityX, uint256 requiredX) private pure returns (int256 whole) {
        unchecked { // U14
            int256 difference = equityX - int256(requiredX);
            whole = difference / int256(ONE);
            if (difference < 0 && difference % int256(ONE) != 0) --whole;
        }
    }

    function _divUp(uint256 amount, uint256 divisor) private pure returns (uint256) {
        unchecked { // U14
            return (amount + divisor - 1) / divisor;
        }
    }

    // ------------------------------------------------------------------ state

    function _loadContext(
        AdjustmentContext memory adjustment,
        TraderState storage state,
        MarketContext memory context,
        uint256 word,
        Report calldata report,
        uint256 asOf
    ) private view {
        Reference storage last = state.reference_;
        // Reads single fields: most fields of the slots are not needed.
        Parameters storage current = state.parameters;
        (adjustment.mode, adjustment.imr, adjustment.mmr, adjustment.maxLeverage) =
            (current.mode, current.imr, current.mmr, current.maxLeverage);
        uint256 maxAge = current.reportMaxAge;
        if (last.changePending) {
            Parameters memory next = ActionLib.parametersAt(state, true, asOf);
            (adjustment.mode, adjustment.imr, adjustment.mmr, adjustment.maxLeverage) =
                (next.mode, next.imr, next.mmr, next.maxLeverage);
            maxAge = next.reportMaxAge;
        }
        if (asOf >= context.expiresAt) {
            adjustment.mode = EndingLib.modeAt(state.ending.expiresAt, adjustment.mode, asOf);
        }
        adjustment.step = context.step;
        adjustment.binary = context.kind == MarketKind.BinaryFuture;
        adjustment.fundingIndex = last.fundingIndex;
        if (last.funded) {
            // After the close of a perpetual this may count funding that does not accrue any more, for at most an hour: only the
            // requirement of an addition uses it.
            adjustment.fundingIndex = FundingLib.indexAt(state.funding, last.fundingIndex, state.clock.asOf, asOf);
        }
        uint256 price = _newestPrice(state, context, report, asOf, maxAge);
        PositionLib.unpack(word, adjustment.fundingIndex, adjustment.position);
        unchecked { // U14
            (adjustment.equityX, adjustment.notionalX) =
                MarginLib.exposure(adjustment.position, price * adjustment.step, adjustment.step, adjustment.binary);
        }
    }

    /// @dev The price of the newer of the passed report and the market's last report. A batch mined in between therefore does not
    /// make the adjustment fail, and the operator cannot choose an older price.
    function _newestPrice(
        TraderState storage state,
        MarketContext memory context,
        Report calldata report,
        uint256 asOf,
        uint256 maxAge
    ) private view returns (uint256) {
        Reference storage last = state.reference_;
        (uint256 price, uint256 observedAt) = (last.oraclePrice, last.observedAt);
        if (price != 0 && report.observedAt <= observedAt) {
            if (asOf <= observedAt + maxAge) return price;
            revert ISettlementErrors.ReportStale(asOf, observedAt, maxAge);
        }
        Parameters memory current = ActionLib.parametersAt(state, last.changePending, asOf);
        bool binary = context.kind == MarketKind.BinaryFuture;
        BandLib.checkReport(asOf, report.price, report.observedAt, last, current, context.tick, binary);
        context.oracle.verify(context.feedId, report.price, report.observedAt, report.proof);
        return report.price;
    }

    /// @dev Adds `moved` to the margin and subtracts it from the free balance. Returns the stored (folded) margin.
    function _move(Word storage place, MarketContext memory context, uint256 word, address account, int256 moved)
        private
        returns (int256 folded)
    {
        (place.bits, folded) = PositionLib.addMargin(word, moved, account);
        // `asOf` is the maximum, so that a pending withdrawal backs no adjustment.
        unchecked { // U16
            LedgerCall.move(context.bank, type(uint256).max, account, -moved);
        }
    }
}
