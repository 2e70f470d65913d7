// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdjustments} from "../../../contracts/interfaces/IAdjustments.sol";
import {IFunding} from "../../../contracts/interfaces/IFunding.sol";
import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {IMarketRisk} from "../../../contracts/interfaces/IMarketRisk.sol";
import {ISettlementErrors} from "../../../contracts/interfaces/ISettlementErrors.sol";
import {AdjustLeverage, AdjustMargin} from "../../../contracts/types/Adjustment.sol";
import {Position} from "../../../contracts/types/Position.sol";
import {Report} from "../../../contracts/types/Report.sol";
import {FundingRate} from "../../../contracts/types/TraderState.sol";
import {TradingHandler} from "./TradingHandler.sol";
import {Leg, Listing} from "./ExchangeFixture.sol";
import {positionOf, referenceOf} from "./MarketStorage.sol";
import {holds, same, sign, vm, within} from "./Vm.sol";

/// @title Actions of an operator besides batches: funding, adjustments for owners, backstop, deleveraging
contract OperatorHandler is TradingHandler {
    /// @dev Buffer above maintenance within which forced orders are allowed, in millionths.
    uint256 private constant BUFFER = 5_000;

    uint256 private _nonces;
    /// @notice Counts of successful calls.
    uint256 public funded;
    uint256 public adjusted;
    /// @notice Count of attempted adjustments.
    uint256 public adjustments;
    uint256 public liquidated;
    uint256 public inherited;
    uint256 public deleveraged;

    constructor(Listing memory listed) TradingHandler(listed) {}

    function _reportOf(uint256 price, uint256 observedAt) private view returns (Report memory report) {
        report.price = uint96(price);
        report.observedAt = uint48(observedAt);
        report.proof = _report(price, observedAt);
    }

    /// @dev The next action, at a price that may have moved.
    function _headAt(uint256 seed) private view returns (Head memory head) {
        head = _nextHead();
        bool isNew = head.asOf != referenceOf(address(trader)).observedAt;
        head.oraclePrice = (isNew ? _near(_oracleTicks, seed, 8) : _oracleTicks) * listing.tick;
    }

    // ------------------------------------------------------------------ funding

    /// @notice fundingConserves: a rate within the bounds given by the error is accepted, and no balance changes with it.
    function fund(uint256 seed) external {
        if (listing.fundingCap == 0) return;
        seed = uint256(keccak256(abi.encode(seed, ++_draws)));
        Head memory head = _headAt(seed);
        int256 rate = int256(within(seed >> 64, 0, 2e18)) - 1e18;
        Snapshot memory before = _snapshot();
        try this.setRate(head, int96(rate), seed) {}
        catch (bytes memory reason) {
            if (bytes4(reason) != IFunding.FundingRateOutOfRange.selector) _bubble(reason);
            (int256 lowest, int256 highest) = _boundsIn(reason);
            holds("fundingConserves: bounds", lowest <= highest);
            this.setRate(head, int96(rate < lowest ? lowest : highest), seed);
        }
        ++funded;
        _oracleTicks = head.oraclePrice / listing.tick;
        Snapshot memory after_ = _snapshot();
        _checkTime(before, after_, head.asOf);
        for (uint256 i; i < HOLDERS; ++i) _checkUntouched(i, before, after_);
    }

    /// @dev External, so that its revert reason can be caught.
    function setRate(Head memory head, int96 rate, uint256 seed) external {
        uint48 validUntil = uint48(head.asOf + within(seed >> 160, 1, 3_600_000));
        Report memory none;
        trader.updateFunding(
            head.actionId, head.asOf, rate, validUntil, _reportOf(head.oraclePrice, head.asOf), none
        );
    }

    function _boundsIn(bytes memory reason) private pure returns (int256 lowest, int256 highest) {
        assembly ("memory-safe") {
            lowest := mload(add(reason, 36))
            highest := mload(add(reason, 68))
        }
    }

    // ------------------------------------------------------------------ adjustments

    /// @notice An owner signs for more margin, less margin or another leverage: money moves between the owner's balance and
    /// position only, and the position meets its requirement afterwards.
    function adjust(uint256 seed) external {
        seed = uint256(keccak256(abi.encode(seed, ++_draws)));
        uint256 actorIndex = seed % ACTORS;
        if (positionOf(address(trader), actor(actorIndex), 0).size == 0) return;
        ++adjustments;
        Head memory head = _headAt(seed);
        Snapshot memory before = _snapshot();
        bool removes = seed % 3 != 0;
        try this.sendAdjustment(head, actorIndex, seed) {
            ++adjusted;
        } catch (bytes memory reason) {
            _checkAdjustmentRevert(bytes4(reason), reason);
            return;
        }
        Snapshot memory after_ = _snapshot();
        same("an adjustment consumes no actionId", int48(before.clock.actionId), int48(after_.clock.actionId));
        for (uint256 i; i < HOLDERS; ++i) if (i != actorIndex) _checkUntouched(i, before, after_);
        same(
            "an adjustment moves margin only",
            int256(before.ledger[actorIndex]) + before.folded[actorIndex],
            int256(after_.ledger[actorIndex]) + after_.folded[actorIndex]
        );
        if (!removes || after_.folded[actorIndex] >= before.folded[actorIndex]) return;
        (int256 equity, int256 notional) = _exposure(after_.positions[actorIndex], head.oraclePrice);
        holds("a removal leaves IMR", equity * 1e6 >= notional * int256(uint256(listing.imr)));
    }

    /// @dev External, so that its revert reason can be caught. Signed as typed data or as a personal message.
    function sendAdjustment(Head memory head, uint256 actorIndex, uint256 seed) external {
        Report memory report = _reportOf(head.oraclePrice, head.asOf);
        uint256 deadline = block.timestamp + 60;
        if (seed % 3 == 2) {
            uint256 leverage = within(seed >> 16, 1, listing.maxLeverage) * 1e18;
            AdjustLeverage memory change =
                AdjustLeverage(actor(actorIndex), leverage, type(uint256).max, 0, ++_nonces, deadline);
            trader.adjustLeverage(head.asOf, change, report, _sign(actorIndex, trader.hashLeverageAdjustment(change), seed));
            return;
        }
        bool removes = seed % 3 == 1;
        int256 amount = int256(within(seed >> 16, 1, START_BALANCE / 20));
        AdjustMargin memory signed = AdjustMargin(
            actor(actorIndex), removes ? -amount : amount, removes && seed % 2 == 0 ? 1 : 0, 0, ++_nonces, deadline
        );
        bytes memory signature = _sign(actorIndex, trader.hashMarginAdjustment(signed), seed);
        trader.adjustMargin(head.asOf, signed, report, signature);
        try trader.adjustMargin(head.asOf, signed, report, signature) {
            holds("a margin nonce is used once", false);
        } catch {}
    }

    function _sign(uint256 actorIndex, bytes32 digest, uint256 seed) private pure returns (bytes memory) {
        bool isPersonal = seed % 5 == 0;
        (uint8 v, bytes32 r, bytes32 s) = sign(keyOf(actorIndex), isPersonal ? _personal(digest) : digest);
        return isPersonal ? abi.encodePacked(r, s, v, uint8(1)) : abi.encodePacked(r, s, v);
    }

    function _checkAdjustmentRevert(bytes4 selector, bytes memory reason) private pure {
        if (
            selector != IAdjustments.NothingMoves.selector && selector != IAdjustments.RemovalTooLarge.selector
                && selector != IAdjustments.AdditionInsufficient.selector
                && selector != IAdjustments.LeverageInvalid.selector
                && selector != IMarginBank.FreeBalanceInsufficient.selector
                && selector != IMarginBank.PoolInsufficient.selector
        ) _bubble(reason);
    }

    // ------------------------------------------------------------------ positions below maintenance

    /// @notice liquidationSound: a forced order has no signer, so it only closes, and only below maintenance plus the
    /// buffer.
    function liquidate(uint256 seed) external {
        seed = uint256(keccak256(abi.encode(seed, ++_draws)));
        Head memory head = _headAt(seed);
        head.price = _near(head.oraclePrice / listing.tick, seed, 40);
        uint256 actorIndex = _lowestRatio(head.oraclePrice);
        Snapshot memory before = _snapshot();
        int256 size = before.positions[actorIndex].size;
        if (size == 0) return;
        Leg[] memory legs = new Leg[](2);
        legs[0] = _fresh(actorIndex, size < 0, within(seed >> 64, 1, uint256(size < 0 ? -size : size)), 0, 0);
        legs[0].forced = true;
        legs[0].taker = legs[0].fill;
        legs[1] = _fresh((actorIndex + 1) % ACTORS, size > 0, legs[0].fill, head.price, 1);
        (bool done, bytes4 refusal) = _settle(head, legs);
        if (refusal == ISettlementErrors.NotLiquidatable.selector) {
            return _requireAbove(before, actorIndex, head, uint256(listing.mmr) + BUFFER);
        }
        if (!done) return;
        ++liquidated;
        Snapshot memory after_ = _snapshot();
        _requireBelow(before, after_, actorIndex, head.oraclePrice, uint256(listing.mmr) + BUFFER);
        int256 closed = _size(before.positions[actorIndex]) - _size(after_.positions[actorIndex]);
        same("liquidationSound: closes", int256(legs[0].fill), closed);
    }

    /// @notice liquidationSound: the backstop inherits all or nothing, and only from an account below maintenance.
    function inherit(uint256 seed) external {
        seed = uint256(keccak256(abi.encode(seed, ++_draws)));
        Head memory head = _headAt(seed);
        uint256 actorIndex = _lowestRatio(head.oraclePrice);
        Snapshot memory before = _snapshot();
        try trader.inheritPosition(
            head.actionId, head.asOf, actor(actorIndex), _reportOf(head.oraclePrice, head.asOf)
        ) {} catch (bytes memory reason) {
            if (bytes4(reason) != ISettlementErrors.NotLiquidatable.selector) _bubble(reason);
            return _requireAbove(before, actorIndex, head, listing.mmr);
        }
        _oracleTicks = head.oraclePrice / listing.tick;
        Snapshot memory after_ = _snapshot();
        _checkTime(before, after_, head.asOf);
        _requireBelow(before, after_, actorIndex, head.oraclePrice, listing.mmr);
        for (uint256 i; i < ACTORS; ++i) if (i != actorIndex) _checkUntouched(i, before, after_);
        same("the account's balance stays", int256(before.ledger[actorIndex]), int256(after_.ledger[actorIndex]));
        if (after_.positions[actorIndex].size != 0) {
            _checkUntouched(actorIndex, before, after_);
            return _checkUntouched(ACTORS, before, after_);
        }
        ++inherited;
        int256 sizeBefore = before.positions[actorIndex].size + before.positions[ACTORS].size;
        same("sizes add up", sizeBefore, after_.positions[ACTORS].size);
        (int256 equity, int256 notional) = _exposure(after_.positions[ACTORS], head.oraclePrice);
        holds("the backstop meets IMR", equity * 1e6 >= notional * int256(uint256(listing.imr)));
    }

    /// @notice adlSound: only below maintenance; the account's position shrinks without payment, the counterparty's shrinks
    /// and is paid.
    function deleverage(uint256 seed) external {
        seed = uint256(keccak256(abi.encode(seed, ++_draws)));
        Head memory head = _headAt(seed);
        uint256 actorIndex = _lowestRatio(head.oraclePrice);
        uint256 other = (actorIndex + within(seed >> 16, 1, HOLDERS - 1)) % HOLDERS;
        address[] memory counterparties = new address[](1);
        uint256[] memory steps = new uint256[](1);
        (counterparties[0], steps[0]) = (holder(other), within(seed >> 24, 1, 2_000));
        Snapshot memory before = _snapshot();
        try trader.deleverage(
            head.actionId, head.asOf, actor(actorIndex), counterparties, steps, _reportOf(head.oraclePrice, head.asOf)
        ) {} catch (bytes memory reason) {
            bytes4 selector = bytes4(reason);
            bool known = selector == ISettlementErrors.NotLiquidatable.selector
                || selector == IMarketRisk.BackstopFirst.selector || selector == IMarginBank.PoolInsufficient.selector;
            if (!known) _bubble(reason);
            if (selector == ISettlementErrors.NotLiquidatable.selector) _requireAbove(before, actorIndex, head, listing.mmr);
            return;
        }
        ++deleveraged;
        _oracleTicks = head.oraclePrice / listing.tick;
        Snapshot memory after_ = _snapshot();
        _checkTime(before, after_, head.asOf);
        _requireBelow(before, after_, actorIndex, head.oraclePrice, listing.mmr);
        for (uint256 i; i < HOLDERS; ++i) if (i != actorIndex && i != other) _checkUntouched(i, before, after_);
        same("adlSound: paid nothing", int256(before.ledger[actorIndex]), int256(after_.ledger[actorIndex]));
        holds("adlSound: paid", after_.ledger[other] >= before.ledger[other]);
        int256 closed = _size(before.positions[actorIndex]) - _size(after_.positions[actorIndex]);
        holds("adlSound: at most the requested steps", closed >= 0 && closed <= int256(steps[0]));
        same("adlSound: both shrink", _size(before.positions[other]) - closed, _size(after_.positions[other]));
    }

    /// @dev Includes accrued funding.
    function _requireBelow(
        Snapshot memory before,
        Snapshot memory after_,
        uint256 actorIndex,
        uint256 price,
        uint256 requirement
    ) private view {
        holds("liquidationSound", _isBelow(before, after_.last.fundingIndex, actorIndex, price, requirement));
    }

    /// @dev If the action reverted with NotLiquidatable, the account must be at or above the requirement.
    function _requireAbove(Snapshot memory before, uint256 actorIndex, Head memory head, uint256 requirement) private view {
        int256 index = before.last.fundingIndex + _due(before.clock.asOf, head.asOf);
        holds("liquidationComplete", !_isBelow(before, index, actorIndex, head.oraclePrice, requirement));
    }

    function _isBelow(Snapshot memory before, int256 index, uint256 actorIndex, uint256 price, uint256 requirement)
        private
        view
        returns (bool)
    {
        Position memory held = before.positions[actorIndex];
        held.margin = before.folded[actorIndex] - held.size * index;
        (int256 equity, int256 notional) = _exposure(held, price);
        return equity * 1e6 < notional * int256(requirement);
    }

    /// @dev Accrual of the index between two times, computed independently of the contract.
    function _due(uint256 from, uint256 to) private view returns (int256) {
        FundingRate memory running = trader.fundingRate();
        uint256 end = to < running.validUntil ? to : running.validUntil;
        return end <= from ? int256(0) : running.rate * int256(end - from) / 3_600_000;
    }

    /// @dev The actor with the lowest ratio, in millionths.
    function _lowestRatio(uint256 price) private view returns (uint256 actorIndex) {
        int256 lowest = type(int256).max;
        int256 index = referenceOf(address(trader)).fundingIndex;
        for (uint256 i; i < ACTORS; ++i) {
            (int256 equity, int256 notional) = _exposure(positionOf(address(trader), actor(i), index), price);
            if (notional == 0) continue;
            int256 ratio = (equity * 1e6) / notional;
            if (ratio < lowest) (lowest, actorIndex) = (ratio, i);
        }
    }
}
