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
import {FundingLib} from "./FundingLib.sol";
import {LedgerCall} from "./LedgerCall.sol";
import {MarginLib} from "./MarginLib.sol";
import {PositionLib} from "./PositionLib.sol";

/**
 * @title Margin and leverage, changed by the owner of a position. Twin of domain/adjust.ts
 * @dev What is measured is unchecked: positions come out of storage, whose widths `PositionLib` states, and requirements are
 * bounded as in `MarginLib`. What was signed may be any number: it is compared, and moves only within 96 bits.
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
        // Check: the owner wants it, and the position bears it.
        address account = signed.account;
        Word storage place = state.positions[account];
        uint256 word = place.bits;
        _spendNonce(state, account, signed.nonce, word);
        _requireInTime(account, signed.deadline, asOf);
        address signer = _requireSigner(context, account, hashMargin(context.domainSeparator, signed), signature, asOf);
        AdjustmentContext memory adjustment;
        _open(adjustment, state, context, word, report, asOf);
        int256 moved = marginToMove(adjustment, signed);
        ActionLib.requireMode(adjustment.mode, moved > 0 ? ActionKind.AddMargin : ActionKind.RemoveMargin);

        // Effect: position, then balance.
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
        _spendNonce(state, account, signed.nonce, word);
        _requireInTime(account, signed.deadline, asOf);
        address signer = _requireSigner(context, account, hashLeverage(context.domainSeparator, signed), signature, asOf);
        AdjustmentContext memory adjustment;
        _open(adjustment, state, context, word, report, asOf);
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

    // ------------------------------------------------------------------ the owner's word

    /// @param word The account's position: says whether there is a floor to read.
    function _spendNonce(TraderState storage state, address account, uint256 nonce, uint256 word) private {
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

    /// @notice The word that holds the nonce's bit, at `nonce & 255`. For nonces below `NONCE_END`.
    function nonceKey(address account, uint256 nonce) internal pure returns (uint256) {
        return (uint256(uint160(account)) << 96) | (nonce >> 8);
    }

    /// @dev `asOf` may lie behind block time by ACTION_LIFETIME: so late can an adjustment still come.
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

    /// @dev Both structs are six words, hashed as they stand in calldata. Fields narrower than a word are checked where they are
    /// read. Works above the free memory pointer.
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
        // Refuses other lengths, high s values and the zero address.
        (signer, problem,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (problem != ECDSA.RecoverError.NoError) revert IAdjustments.AdjustmentSignatureInvalid(account);
        if (signer != account && !context.accountManager.isAuthorized(account, signer, CHANGE_MARGIN, asOf)) {
            revert IAdjustments.AdjusterUnauthorized(account, signer);
        }
    }

    // ------------------------------------------------------------------ what may move

    /// @notice Into the position, negative out of it. Refuses what the rules do not allow.
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
            // Of the least int256 too.
            uint256 asked;
            unchecked {
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
        unchecked {
            uint256 trigger = adjustment.mmr + MarginLib.LIQUIDATION_BUFFER;
            if (adjustment.equityX * MarginLib.MILLION >= int256(adjustment.notionalX * trigger)) return;
            uint256 needed = uint256(-_surplus(adjustment.equityX, _initialRequirement(adjustment)));
            if (amount < needed) revert IAdjustments.AdditionInsufficient(account, needed, amount);
        }
    }

    /// @notice The ratio stays at IMR and at 1 / leverage, margin does not fall below zero, full collateral stays full. Down.
    /// For an account that has a position.
    function maxRemovable(AdjustmentContext memory adjustment) internal pure returns (uint256) {
        Position memory position = adjustment.position;
        uint256 requiredX = _initialRequirement(adjustment);
        uint256 atLeverageX = _divUp(adjustment.notionalX, position.leverage);
        int256 most = _surplus(adjustment.equityX, atLeverageX > requiredX ? atLeverageX : requiredX);
        int256 margin = position.margin;
        if (adjustment.binary) {
            int256 loss = _maximumLoss(adjustment);
            unchecked {
                if (margin >= loss && loss > 0) margin -= loss;
            }
        }
        if (margin < most) most = margin;
        return most > 0 ? uint256(most) : 0;
    }

    /// @notice Into the position, negative out of it: what brings equity to notional / leverage, as far as there is margin.
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

    /// @dev Covers the largest loss that a binary position can have: its entry, or for a short what price 1 costs beyond it.
    function _maximumLoss(AdjustmentContext memory adjustment) private pure returns (int256) {
        int256 entry = int256(adjustment.position.entryNotional);
        int256 size = adjustment.position.size;
        unchecked {
            return size > 0 ? entry : -size * int256(adjustment.step) - entry;
        }
    }

    function _initialRequirement(AdjustmentContext memory adjustment) private pure returns (uint256) {
        unchecked {
            return _divUp(adjustment.notionalX * adjustment.imr, MILLION);
        }
    }

    /// @dev Equity less what is required in whole wei, down.
    function _surplus(int256 equityX, uint256 requiredX) private pure returns (int256 whole) {
        unchecked {
            int256 difference = equityX - int256(requiredX);
            whole = difference / int256(ONE);
            if (difference < 0 && difference % int256(ONE) != 0) --whole;
        }
    }

    function _divUp(uint256 amount, uint256 divisor) private pure returns (uint256) {
        unchecked {
            return (amount + divisor - 1) / divisor;
        }
    }

    // ------------------------------------------------------------------ state

    function _open(
        AdjustmentContext memory adjustment,
        TraderState storage state,
        MarketContext memory context,
        uint256 word,
        Report calldata report,
        uint256 asOf
    ) private view {
        Reference storage last = state.reference_;
        // Field by field: most of what the slots hold is not asked for.
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
        adjustment.step = context.step;
        adjustment.binary = context.kind == MarketKind.BinaryFuture;
        adjustment.fundingIndex = last.fundingIndex;
        if (last.funded) {
            adjustment.fundingIndex = FundingLib.indexAt(state.funding, last.fundingIndex, state.clock.asOf, asOf);
        }
        uint256 price = _newestPrice(state, context, report, asOf, maxAge);
        PositionLib.unpack(word, adjustment.fundingIndex, adjustment.position);
        unchecked {
            (adjustment.equityX, adjustment.notionalX) =
                MarginLib.exposure(adjustment.position, price * adjustment.step, adjustment.step, adjustment.binary);
        }
    }

    /// @dev The price of the report, or of the market's last one where that is as new: a batch that came in between makes nothing
    /// fail, and nobody can choose an older price.
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
        BandLib.checkReport(asOf, report.price, report.observedAt, last, current, binary);
        context.oracle.verify(context.feedId, report.price, report.observedAt, report.proof);
        return report.price;
    }

    /// @dev Margin changes by `moved`, the free balance by the opposite. Returns the stored margin.
    function _move(Word storage place, MarketContext memory context, uint256 word, address account, int256 moved)
        private
        returns (int256 folded)
    {
        (place.bits, folded) = PositionLib.addMargin(word, moved, account);
        // As of never: a withdrawal that is pending backs no adjustment. What was moved fits 93 bits.
        unchecked {
            LedgerCall.move(context.bank, type(uint256).max, account, -moved);
        }
    }
}
