// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {MarketKind} from "../../../contracts/types/Market.sol";
import {House} from "./House.sol";
import {Listing} from "./Stage.sol";
import {deploy, holds, same} from "./Vm.sol";

/// @title What holds after every step of every run, in every kind of market
abstract contract ExchangeInvariants {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    House internal house;

    function _listing() internal pure virtual returns (Listing memory);

    function setUp() public {
        house = House(deploy("House", abi.encode(_listing())));
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(house);
    }

    /// @dev Trading is what happens most: every third step.
    function targetSelectors() public view returns (FuzzSelector[] memory targets) {
        bytes4[] memory steps = new bytes4[](21);
        steps[0] = house.trade.selector;
        steps[1] = house.cancel.selector;
        steps[2] = house.cancelAll.selector;
        steps[3] = house.pass.selector;
        steps[4] = house.deposit.selector;
        steps[5] = house.donate.selector;
        steps[6] = house.requestWithdrawal.selector;
        steps[7] = house.withdraw.selector;
        steps[8] = house.collectFees.selector;
        steps[9] = house.trespass.selector;
        steps[10] = house.fund.selector;
        steps[11] = house.adjust.selector;
        steps[12] = house.inherit.selector;
        steps[13] = house.deleverage.selector;
        steps[14] = house.liquidate.selector;
        for (uint256 i = 15; i < steps.length; ++i) steps[i] = house.trade.selector;
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(house), steps);
    }

    /// @notice One run judges them all; what breaks is named by its error.
    function invariant_exchange() public view {
        _bankBacked();
        _longsEqualShorts();
        _priceFreeSolvency();
        _ofThisMarket();
    }

    /// @dev What holds in this market only.
    function _ofThisMarket() internal view virtual {}

    /// @dev The bank holds what it owes, and what was given to it.
    function _bankBacked() private view {
        IMarginBank.Market memory market = house.bank().market(address(house.trader()));
        uint256 owed = house.owed() + market.pool + market.fees;
        same("bankBacked", int256(owed + house.donated()), int256(house.token().balanceOf(address(house.bank()))));
        same("bankBacked: in and out", int256(house.deposited() - house.withdrawn()), int256(owed));
    }

    /// @dev Every long has its short.
    function _longsEqualShorts() private view {
        (int256 size,) = house.sums(0);
        same("longsEqualShorts", 0, size);
    }

    /// @dev The pool is what accounts have in their positions, at any price, to the wei.
    function _priceFreeSolvency() private view {
        int256 pool = int256(uint256(house.bank().market(address(house.trader())).pool)) * 1e18;
        uint256[3] memory prices = [uint256(0), 5e17, 1e18];
        for (uint256 i; i < prices.length; ++i) {
            (, int256 equityX) = house.sums(prices[i]);
            same("priceFreeSolvency", pool, equityX);
        }
    }

    /// @notice A run in which little is traded would prove little; and every run ends with everybody leaving.
    function afterInvariant() public {
        holds("trades go through", house.tried() < 12 || house.traded() * 3 >= house.tried());
        holds("adjustments go through", house.adjustments() < 12 || house.adjusted() * 8 >= house.adjustments());
        house.everybodyLeaves();
        _bankBacked();
    }
}

contract PerpetualInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Perpetual, 1e17, 1e15, 20, 45_000, 22_500, 100, 500, 40_000, 500_000, false);
    }
}

contract FutureInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Future, 5e17, 1e16, 5, 180_000, 90_000, 100, 2_000, 0, 20_000, false);
    }
}

contract BinaryInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.BinaryFuture, 1e15, 1e18, 5, 180_000, 90_000, 1_000, 20_000, 0, 500, false);
    }
}

/// @notice Without leverage a binary market is covered in full, whichever way it ends.
contract CoveredBinaryInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.BinaryFuture, 1e15, 1e18, 1, 1_000_000, 500_000, 1_000, 20_000, 0, 500, false);
    }

    function _ofThisMarket() internal view override {
        holds("binaryFullyBacked: no", house.leastEquity(0) >= 0);
        holds("binaryFullyBacked: yes", house.leastEquity(1e18) >= 0);
    }
}

/// @notice At one price for ever, nobody gains anything from anybody, whatever they do together.
contract SteadyPriceInvariants is ExchangeInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Perpetual, 1e17, 1e15, 20, 45_000, 22_500, 100, 500, 0, 499_999, true);
    }

    function _ofThisMarket() internal view override {
        house.requireNoProfit(499_999 * 1e17);
    }
}
