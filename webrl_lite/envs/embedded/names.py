"""Names that several sites share: people and towns. Plain data, all invented.

The map draws ``TOWNS``; the shop's customers live there, so a task can lead from an order to a place.
"""

from dataclasses import dataclass

FIRST_NAMES = (
    "Ada Amir Anouk Bao Bela Bruno Carla Cedric Chiara Daria Dmitri Edda Elias Emeka Enzo Farah Femi Flora Goran "
    "Greta Hana Hugo Ilse Imani Ines Ivo Jada Jonas Juno Kai Karim Keiko Lars Leila Lena Luca Magda Malik Marta "
    "Mila Nadia Nils Noor Odile Olga Omar Pablo Petra Quinn Rafael Rhea Rosa Ruben Sana Selma Silas Sven Talia "
    "Tariq Theo Uma Vera Viktor Wanda Yara Yusuf Zara Zeno"
).split()

LAST_NAMES = (
    "Abara Almeida Anders Arslan Bakker Baptiste Becker Bianchi Brandt Castell Chandra Cruz Dahl Delgado Dubois "
    "Eklund Farkas Fontaine Garrido Gruber Haddad Hansen Hofer Horvat Ibarra Iversen Jansen Jovic Kaya Keller "
    "Kimura Kovacs Laine Larsen Lindqvist Lopes Maas Marchetti Mbeki Meyer Moreau Nakamura Novak Okafor Olsen "
    "Orlov Paredes Petrov Quist Rahman Reyes Ricci Sato Schmid Silva Sorensen Tanaka Toure Ulrich Vargas Vogel "
    "Weiss Winter Yilmaz Zeman Ziegler"
).split()


@dataclass(frozen=True)
class Town:
    """A town of the map."""

    name: str
    zip: str
    """Five digits."""
    x: float
    """Kilometres east of the map's south-west corner."""
    y: float
    """Kilometres north of it."""


TOWNS = (
    Town("Alderbrook", "20110", 12.0, 64.0),
    Town("Brindle Bay", "20125", 31.0, 71.0),
    Town("Carrow Hill", "20140", 52.0, 66.0),
    Town("Dunmere", "20155", 74.0, 70.0),
    Town("Eastwick", "20170", 88.0, 52.0),
    Town("Fallow Ford", "20185", 68.0, 47.0),
    Town("Gildersea", "20200", 46.0, 44.0),
    Town("Harrowgate", "20215", 24.0, 48.0),
    Town("Inverlake", "20230", 10.0, 30.0),
    Town("Juniper Falls", "20245", 29.0, 22.0),
    Town("Kettleby", "20260", 51.0, 20.0),
    Town("Larkhaven", "20275", 73.0, 24.0),
    Town("Moss Landing", "20290", 90.0, 14.0),
    Town("Northam", "20305", 38.0, 90.0),
)
